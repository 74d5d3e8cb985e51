/** Tokens: created, listed and revoked. The text of a token is shown once, and kept nowhere. */

import { useState } from "preact/hooks";
import type { TokenBody } from "../../../src/api/operations/access/access.ts";
import type { Permission } from "../../../src/core/access/permissions.ts";
import { call } from "../api/call.ts";
import { useResource } from "../api/resource.ts";
import { Action } from "../parts/action.tsx";
import { Copy } from "../parts/copy.tsx";
import { Empty, ProblemNote, ResourceNote } from "../parts/notes.tsx";
import { ChoiceField, type ChoiceFieldProps, messageAt, TextField } from "../parts/schema-form.tsx";
import { Status } from "../parts/status.tsx";
import { useSubmission } from "../parts/submission.ts";
import { type Column, Table } from "../parts/table.tsx";
import { Ago } from "../parts/time.tsx";

const DAY_MS = 86_400_000;
const EXPIRES = [
  ["", "never"],
  [String(DAY_MS), "in a day"],
  [String(30 * DAY_MS), "in 30 days"],
  [String(90 * DAY_MS), "in 90 days"],
  [String(365 * DAY_MS), "in a year"],
] as const;

export function Tokens() {
  const tokens = useResource("GET /tokens", {}, { freshMs: null, everyMs: 30_000 });
  const [made, setMade] = useState<{ name: string; token: string } | null>(null);
  return (
    <section aria-labelledby="tokens" class="part">
      <h2 id="tokens">Tokens</h2>
      <ResourceNote of={tokens} what="tokens" />
      {made && <MadeNote name={made.name} token={made.token} onClose={() => setMade(null)} />}
      <Table
        label="Tokens"
        rows={tokens.data?.tokens}
        keyOf={({ id }) => id}
        columns={columns(tokens.reload)}
        empty={
          <Empty title="There are no tokens">
            A program sends one as <code>Authorization: Bearer …</code>, or has it in <code>BATON_TOKEN</code>
            .
          </Empty>
        }
      />
      <NewToken
        onMade={(name, token) => {
          setMade({ name, token });
          tokens.reload();
        }}
      />
    </section>
  );
}

function columns(reload: () => void): readonly Column<TokenBody>[] {
  return [
    [
      "Token",
      ({ name, expired }) => (
        <>
          {name} {expired && <Status word="expired" tone="off" />}
        </>
      ),
    ],
    ["Permission", ({ permission }) => permission],
    ["Created", (token) => <Ago at={token.created_at} />],
    ["By", (token) => token.created_by],
    ["Last used", (token) => <Ago at={token.last_used_at} none="never" />],
    ["Expires", (token) => <Ago at={token.expires_at} none="never" />],
    ["", (token) => <Revoke token={token} onDone={reload} />, "right"],
  ];
}

function Revoke({ token: { id, name }, onDone }: { token: TokenBody; onDone: () => void }) {
  return (
    <Action
      route="DELETE /tokens/{id}"
      send={{ params: { id } }}
      done={`${name} is revoked.`}
      onDone={onDone}
      class="small"
      label={`Revoke ${name}`}
      ask={{
        body: "Within seconds no node accepts it any more. Programs that use it are locked out; this cannot be undone.",
        action: "Revoke the token",
        danger: true,
      }}
    >
      Revoke…
    </Action>
  );
}

function MadeNote({ name, token, onClose }: { name: string; token: string; onClose: () => void }) {
  return (
    <div class="note good" role="status">
      <p>
        <strong>{name} is created. Copy it now: it is shown only once.</strong>
      </p>
      <p class="row">
        <code class="secret" data-testid="token">
          {token}
        </code>
        <Copy text={token} what="the token" />
      </p>
      <button type="button" class="small" onClick={onClose}>
        Done
      </button>
    </div>
  );
}

function NewToken({ onMade }: { onMade: (name: string, token: string) => void }) {
  const [name, setName] = useState("");
  const [permission, setPermission] = useState<Permission>("submit");
  const [expires, setExpires] = useState("");
  const { onSubmit, busy, problem, at } = useSubmission(async () => {
    const body = { name, permission, ...(expires !== "" && { expires_in_ms: Number(expires) }) };
    const { token } = await call("POST /tokens", { body });
    onMade(name, token);
    setName("");
  });
  return (
    <details>
      <summary>New token</summary>
      <form class="form" aria-label="New token" onSubmit={onSubmit}>
        {problem && !at && <ProblemNote problem={problem} />}
        <div class="fields">
          <TextField
            label="Name"
            required
            hint={'e.g. "ci"'}
            error={messageAt(at, "name", false)}
            value={name}
            onChange={(text) => setName(text.trim())}
          />
          <ChoiceField
            label="Expires"
            error={messageAt(at, "expires_in_ms", false)}
            value={expires}
            options={EXPIRES}
            onChange={setExpires}
          />
        </div>
        <PermissionField value={permission} onChange={setPermission} />
        <div class="row">
          <button type="submit" class="primary" disabled={busy || name === ""}>
            Create token
          </button>
        </div>
      </form>
    </details>
  );
}

const PERMISSION_OPTIONS: readonly (readonly [Permission, string])[] = [
  ["read", "read: see everything but settings"],
  ["submit", "submit: and submit jobs"],
  ["operate", "operate: and manage jobs, queues, schedules and nodes"],
  ["admin", "admin: and create tokens and users"],
];

export function PermissionField(props: Pick<ChoiceFieldProps<Permission>, "value" | "onChange">) {
  return <ChoiceField label="Permission" options={PERMISSION_OPTIONS} {...props} />;
}
