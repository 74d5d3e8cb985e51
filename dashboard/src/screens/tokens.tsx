/** Tokens: made, listed and revoked. What a token says is shown once, and kept nowhere. */

import { useState } from "preact/hooks";
import type { TokenBody } from "../../../src/api/bodies/access-body.ts";
import type { Permission } from "../../../src/core/access/permissions.ts";
import { call } from "../api/call.ts";
import { useResource } from "../api/resource.ts";
import { Action } from "../parts/action.tsx";
import { Copy } from "../parts/copy.tsx";
import { Empty, Loading, ProblemNote } from "../parts/notes.tsx";
import { Field, messageAt } from "../parts/schema-form.tsx";
import { Status } from "../parts/status.tsx";
import { useSubmission } from "../parts/submission.ts";
import { Table } from "../parts/table.tsx";
import { Ago } from "../parts/time.tsx";
import { PermissionField } from "./permission-field.tsx";

const DAY_MS = 86_400_000;
const EXPIRES = [
  ["", "never"],
  [String(DAY_MS), "in a day"],
  [String(30 * DAY_MS), "in 30 days"],
  [String(90 * DAY_MS), "in 90 days"],
  [String(365 * DAY_MS), "in a year"],
] as const;

export function Tokens() {
  const { data, problem, reload } = useResource("GET /tokens", {}, { freshMs: null, everyMs: 30_000 });
  const [made, setMade] = useState<{ name: string; token: string } | null>(null);
  return (
    <section aria-labelledby="tokens" class="part">
      <h2 id="tokens">Tokens</h2>
      {problem && <ProblemNote problem={problem} retry={reload} />}
      {!data && !problem && <Loading what="tokens" />}
      {made && <MadeNote name={made.name} token={made.token} onClose={() => setMade(null)} />}
      {data?.tokens.length === 0 && (
        <Empty title="There are no tokens">
          A program sends one as <code>Authorization: Bearer …</code>, or has it in <code>BATON_TOKEN</code>.
        </Empty>
      )}
      {data && data.tokens.length > 0 && (
        <Table
          label="Tokens"
          head={
            <>
              <th>Token</th>
              <th>Permission</th>
              <th>Made</th>
              <th>By</th>
              <th>Last used</th>
              <th>Expires</th>
              <th>
                <span class="unseen">Actions</span>
              </th>
            </>
          }
        >
          {data.tokens.map((token) => (
            <Row key={token.id} token={token} onChange={reload} />
          ))}
        </Table>
      )}
      <NewToken
        onMade={(name, token) => {
          setMade({ name, token });
          reload();
        }}
      />
    </section>
  );
}

function Row({ token, onChange }: { token: TokenBody; onChange: () => void }) {
  const { id, name } = token;
  return (
    <tr>
      <td>
        {name} {token.expired && <Status word="expired" tone="off" />}
      </td>
      <td>{token.permission}</td>
      <td>
        <Ago at={token.created_at} />
      </td>
      <td>{token.created_by}</td>
      <td>
        <Ago at={token.last_used_at} none="never" />
      </td>
      <td>
        <Ago at={token.expires_at} none="never" />
      </td>
      <td class="right">
        <Action
          route="DELETE /tokens/{id}"
          doing={`Revoking ${name}`}
          class="small"
          label={`Revoke ${name}`}
          ask={{
            title: `Revoke ${name}?`,
            body: "Within seconds no node takes it any more. Whatever uses it is locked out; this cannot be undone.",
            action: "Revoke the token",
            danger: true,
          }}
          run={async () => {
            await call("DELETE /tokens/{id}", { params: { id } });
            onChange();
            return `${name} is revoked.`;
          }}
        >
          Revoke…
        </Action>
      </td>
    </tr>
  );
}

function MadeNote({ name, token, onClose }: { name: string; token: string; onClose: () => void }) {
  return (
    <div class="note good" role="status">
      <p>
        <strong>{name} is made. Copy it now: it is shown this once.</strong>
      </p>
      <p class="row">
        <code class="secret" data-testid="token">
          {token}
        </code>
        <Copy text={token} what="the token" />
      </p>
      <button type="button" class="small" onClick={onClose}>
        I have it
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
          <Field label="Name" required hint="who uses it, as ci" error={messageAt(at, "name", false)}>
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
          <Field label="Expires" error={messageAt(at, "expires_in_ms", false)}>
            {({ id }) => (
              <select
                id={id}
                value={expires}
                onChange={({ currentTarget }) => setExpires(currentTarget.value)}
              >
                {EXPIRES.map(([value, words]) => (
                  <option key={value} value={value}>
                    {words}
                  </option>
                ))}
              </select>
            )}
          </Field>
        </div>
        <PermissionField value={permission} onChange={setPermission} />
        <div class="row">
          <button type="submit" class="primary" disabled={busy || name === ""}>
            Make the token
          </button>
        </div>
      </form>
    </details>
  );
}
