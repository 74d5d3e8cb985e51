/** Tokens: created, listed and revoked. The text of a token is shown once, and kept nowhere. */

import type { RenderableProps } from "preact";
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
import { type Submission, useSubmission } from "../parts/submission.ts";
import { type Column, Section, Table } from "../parts/table.tsx";
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
    <Section id="tokens" title="Tokens">
      <ResourceNote of={tokens} what="tokens" />
      {made && (
        <div class="note good" role="status">
          <p>
            <strong>{made.name} is created. Copy it now: it is shown only once.</strong>
          </p>
          <p class="row">
            <code class="secret" data-testid="token">
              {made.token}
            </code>
            <Copy text={made.token} what="the token" />
          </p>
          <button type="button" class="small" onClick={() => setMade(null)}>
            Done
          </button>
        </div>
      )}
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
    </Section>
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
    [
      "",
      ({ id, name }) => (
        <Action
          route="DELETE /tokens/{id}"
          send={{ params: { id } }}
          done={`${name} is revoked.`}
          onDone={reload}
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
      ),
      "right",
    ],
  ];
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
  const submit = { onSubmit, problem: at ? null : problem, label: "Create token", off: busy || name === "" };
  return (
    <NewEntry title="New token" {...submit}>
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
    </NewEntry>
  );
}

interface NewEntryProps extends Pick<Submission, "onSubmit" | "problem"> {
  readonly title: string;
  readonly label: string;
  readonly off: boolean;
  readonly note?: string;
}

/** A form that is folded up while it is not needed. */
export function NewEntry(props: RenderableProps<NewEntryProps>) {
  const { title, onSubmit, problem, label, off, note, children } = props;
  return (
    <details>
      <summary>{title}</summary>
      <form class="form" aria-label={title} onSubmit={onSubmit}>
        {problem && <ProblemNote problem={problem} />}
        {children}
        <div class="row">
          <button type="submit" class="primary" disabled={off}>
            {label}
          </button>
          {note && <span class="muted">{note}</span>}
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
