/** Users: people with a password, for this page. */

import { useState } from "preact/hooks";
import type { UserBody } from "../../../src/api/bodies/access-body.ts";
import type { Permission } from "../../../src/core/access/permissions.ts";
import { call } from "../api/call.ts";
import { useResource } from "../api/resource.ts";
import { Action } from "../parts/action.tsx";
import { Empty, Loading, ProblemNote } from "../parts/notes.tsx";
import { Field, messageAt } from "../parts/schema-form.tsx";
import { useSubmission } from "../parts/submission.ts";
import { Table } from "../parts/table.tsx";
import { Ago } from "../parts/time.tsx";
import { Dialog } from "../shell/dialog.tsx";
import { said } from "../shell/toasts.tsx";
import { PermissionField } from "./permission-field.tsx";

export function Users() {
  const { data, problem, reload } = useResource("GET /users", {}, { freshMs: null, everyMs: 30_000 });
  const [changing, setChanging] = useState<string | null>(null);
  return (
    <section aria-labelledby="users" class="part">
      <h2 id="users">Users</h2>
      {problem && <ProblemNote problem={problem} retry={reload} />}
      {!data && !problem && <Loading what="users" />}
      {data?.users.length === 0 && (
        <Empty title="There are no users">They sign in on this page with a password.</Empty>
      )}
      {data && data.users.length > 0 && (
        <Table
          label="Users"
          head={
            <>
              <th>User</th>
              <th>Permission</th>
              <th>Added</th>
              <th>By</th>
              <th>Last sign-in</th>
              <th>
                <span class="unseen">Actions</span>
              </th>
            </>
          }
        >
          {data.users.map((user) => (
            <Row key={user.name} user={user} onChange={reload} onPassword={() => setChanging(user.name)} />
          ))}
        </Table>
      )}
      <NewUser
        onMade={(name) => {
          said(`${name} may sign in now.`);
          reload();
        }}
      />
      {changing !== null && <PasswordDialog name={changing} onClose={() => setChanging(null)} />}
    </section>
  );
}

function Row({
  user,
  onChange,
  onPassword,
}: {
  user: UserBody;
  onChange: () => void;
  onPassword: () => void;
}) {
  const { name } = user;
  return (
    <tr>
      <td>{name}</td>
      <td>{user.permission}</td>
      <td>
        <Ago at={user.created_at} />
      </td>
      <td>{user.created_by}</td>
      <td>
        <Ago at={user.last_used_at} none="never" />
      </td>
      <td class="right">
        <span class="row end">
          <button type="button" class="small" aria-label={`New password for ${name}`} onClick={onPassword}>
            New password…
          </button>
          <Action
            route="DELETE /users/{name}"
            doing={`Removing ${name}`}
            class="small"
            label={`Remove ${name}`}
            ask={{
              title: `Remove ${name}?`,
              body: "They are signed out everywhere within seconds, and cannot sign in any more.",
              action: "Remove the user",
              danger: true,
            }}
            run={async () => {
              await call("DELETE /users/{name}", { params: { name } });
              onChange();
              return `${name} is removed.`;
            }}
          >
            Remove…
          </Action>
        </span>
      </td>
    </tr>
  );
}

function PasswordField({
  value,
  error,
  onChange,
}: {
  value: string;
  error: string | null;
  onChange: (password: string) => void;
}) {
  return (
    <Field label="Password" required hint="at least 12 characters, and not a well-known one" error={error}>
      {({ id, describedBy }) => (
        <input
          id={id}
          type="password"
          required
          autocomplete="new-password"
          aria-describedby={describedBy}
          value={value}
          onInput={({ currentTarget }) => onChange(currentTarget.value)}
        />
      )}
    </Field>
  );
}

function NewUser({ onMade }: { onMade: (name: string) => void }) {
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const [permission, setPermission] = useState<Permission>("read");
  const { onSubmit, busy, problem, at } = useSubmission(async () => {
    await call("POST /users", { body: { name, password, permission } });
    onMade(name);
    setName("");
    setPassword("");
  });
  return (
    <details>
      <summary>New user</summary>
      <form class="form" aria-label="New user" onSubmit={onSubmit}>
        {problem && !at && <ProblemNote problem={problem} />}
        <div class="fields">
          <Field label="Name" required hint="as ann, or ann@example.org" error={messageAt(at, "name", false)}>
            {({ id, describedBy }) => (
              <input
                id={id}
                required
                autocomplete="off"
                spellcheck={false}
                aria-describedby={describedBy}
                value={name}
                onInput={({ currentTarget }) => setName(currentTarget.value.trim())}
              />
            )}
          </Field>
          <PasswordField value={password} error={messageAt(at, "password", false)} onChange={setPassword} />
        </div>
        <PermissionField value={permission} onChange={setPermission} />
        <div class="row">
          <button type="submit" class="primary" disabled={busy || name === "" || password === ""}>
            Add the user
          </button>
          <span class="muted">Another permission later: remove the user and add it again.</span>
        </div>
      </form>
    </details>
  );
}

function PasswordDialog({ name, onClose }: { name: string; onClose: () => void }) {
  const [password, setPassword] = useState("");
  const { onSubmit, busy, problem, at } = useSubmission(async () => {
    await call("PUT /users/{name}/password", { params: { name }, body: { password } });
    said(`${name} has another password, and is signed out everywhere.`);
    onClose();
  });
  return (
    <Dialog title={`New password for ${name}`} onClose={onClose}>
      <form onSubmit={onSubmit}>
        <div class="dialog-body">
          {problem && !at && <ProblemNote problem={problem} />}
          <PasswordField value={password} error={messageAt(at, "password", false)} onChange={setPassword} />
        </div>
        <div class="row end">
          <button type="button" onClick={onClose}>
            Leave it
          </button>
          <button type="submit" class="primary" disabled={busy || password === ""}>
            Set the password
          </button>
        </div>
      </form>
    </Dialog>
  );
}
