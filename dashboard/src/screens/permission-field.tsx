import type { Permission } from "../../../src/core/access/permissions.ts";
import { PERMISSIONS } from "../../../src/core/access/permissions.ts";
import { Field } from "../parts/schema-form.tsx";

const WORDS: Readonly<Record<Permission, string>> = {
  read: "read: look at everything but settings",
  submit: "submit: and submit jobs",
  operate: "operate: and steer jobs, queues, schedules and nodes",
  admin: "admin: and make tokens and users",
};

export function PermissionField({
  value,
  onChange,
}: {
  value: Permission;
  onChange: (permission: Permission) => void;
}) {
  return (
    <Field label="Permission">
      {({ id }) => (
        <select
          id={id}
          value={value}
          onChange={({ currentTarget }) =>
            onChange(PERMISSIONS.find((each) => each === currentTarget.value) ?? value)
          }
        >
          {PERMISSIONS.map((each) => (
            <option key={each} value={each}>
              {WORDS[each]}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}
