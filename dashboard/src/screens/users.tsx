/** Users: people with a password, for this page. */

import type { ComponentProps } from "preact";
import { useState } from "preact/hooks";
import type { UserBody } from "../../../src/api/operations/access/access.ts";
import type { Permission } from "../../../src/core/access/permissions.ts";
import { call } from "../api/call.ts";
import { useResource } from "../api/resource.ts";
import { Action } from "../parts/action.tsx";
import { Empty, ProblemNote, ResourceNote } from "../parts/notes.tsx";
import { messageAt, TextField } from "../parts/schema-form.tsx";
import { useSubmission } from "../parts/submission.ts";
import { type Column, Section, Table } from "../parts/table.tsx";
import { Ago } from "../parts/time.tsx";
import { Dialog } from "../shell/dialog.tsx";
import { said } from "../shell/toasts.tsx";
import { NewEntry, PermissionField } from "./tokens.tsx";

export function Users() {
  const users = useResource("GET /users", {}, { freshMs: null, everyMs: 30_000 });
  const [changing, setChanging] = useState<string | null>(null);
  return (
    <Section id="users" title="Users">
      <ResourceNote of={users} what="users" />
      <Table
        label="Users"
        rows={users.data?.users}
        keyOf={({ name }) => name}
        columns={columns(users.reload, setChanging)}
        empty={<Empty title="There are no users">They sign in on this page with a password.</Empty>}
      />
      <NewUser
        onMade={(name) => {
          said(`${name} may sign in now.`);
          users.reload();
        }}
      />
      {changing !== null && <PasswordDialog name={changing} onClose={() => setChanging(null)} />}
    </Section>
  );
}

function columns(reload: () => void, onPassword: (name: string) => void): readonly Column<UserBody>[] {
  return [
    ["User", ({ name }) => name],
    ["Permission", ({ permission }) => permission],
    ["Added", (user) => <Ago at={user.created_at} />],
    ["By", (user) => user.created_by],
    ["Last sign-in", (user) => <Ago at={user.last_used_at} none="never" />],
    [
      "",
      ({ name }) => (
        <span class="row end">
          <button
            type="button"
            class="small"
            aria-label={`New password for ${name}`}
            onClick={() => onPassword(name)}
          >
            New password…
          </button>
          <Action
            route="DELETE /users/{name}"
            send={{ params: { name } }}
            done={`${name} is removed.`}
            onDone={reload}
            class="small"
            label={`Remove ${name}`}
            ask={{
              body: "They are signed out everywhere within seconds, and cannot sign in any more.",
              action: "Remove the user",
              danger: true,
            }}
          >
            Remove…
          </Action>
        </span>
      ),
      "right",
    ],
  ];
}

function PasswordField(props: Omit<ComponentProps<typeof TextField>, "label">) {
  const input = { type: "password", autocomplete: "new-password" } as const;
  const hint = "at least 12 characters, and not a well-known one";
  return <TextField label="Password" required hint={hint} input={input} {...props} />;
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
  const note = "Another permission later: remove the user and add it again.";
  const off = busy || name === "" || password === "";
  const submit = { onSubmit, problem: at ? null : problem, label: "Add the user", off, note };
  return (
    <NewEntry title="New user" {...submit}>
      <div class="fields">
        <TextField
          label="Name"
          required
          hint="e.g. ann, or ann@example.org"
          error={messageAt(at, "name", false)}
          value={name}
          onChange={(text) => setName(text.trim())}
        />
        <PasswordField value={password} error={messageAt(at, "password", false)} onChange={setPassword} />
      </div>
      <PermissionField value={permission} onChange={setPermission} />
    </NewEntry>
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
            Cancel
          </button>
          <button type="submit" class="primary" disabled={busy || password === ""}>
            Set the password
          </button>
        </div>
      </form>
    </Dialog>
  );
}
