import type { Permission } from "../../../src/core/access/permissions.ts";
import { ChoiceField } from "../parts/schema-form.tsx";

const OPTIONS: readonly (readonly [Permission, string])[] = [
  ["read", "read: see everything but settings"],
  ["submit", "submit: and submit jobs"],
  ["operate", "operate: and manage jobs, queues, schedules and nodes"],
  ["admin", "admin: and create tokens and users"],
];

export function PermissionField({
  value,
  onChange,
}: {
  value: Permission;
  onChange: (next: Permission) => void;
}) {
  return <ChoiceField label="Permission" value={value} options={OPTIONS} onChange={onChange} />;
}
