/** The settings of this node, as they are in force, and where each comes from. */

import { useState } from "preact/hooks";
import { useResource } from "../api/resource.ts";
import { barredFrom } from "../api/session.ts";
import { Check } from "../parts/check.tsx";
import { ResourceNote } from "../parts/notes.tsx";
import { Facts, Table } from "../parts/table.tsx";
import { Took } from "../parts/time.tsx";
import { Page } from "../shell/page.tsx";

export function SettingsScreen() {
  const barred = barredFrom("GET /node/settings");
  const settings = useResource(barred === null ? "GET /node/settings" : null, {}, { freshMs: null });
  const status = useResource("GET /status", {}, { freshMs: 10_000 }).data;
  const [text, setText] = useState("");
  const [changed, setChanged] = useState(false);
  const rows = (settings.data?.settings ?? []).filter(
    (setting) => (!changed || !setting.is_default) && setting.path.includes(text.trim().toLowerCase()),
  );
  return (
    <Page
      title="Settings"
      about={status ? `Settings of ${status.node}. Other nodes may have others.` : undefined}
    >
      {status && (
        <>
          <Facts
            of={[
              ["Node", status.node],
              ["Version", status.version],
              ["Up", <Took from={status.started_at} until={null} />],
              ["Roles", status.roles.join(", ")],
              ["Store", `${status.store.name}, survives ${status.store.durability}`],
              ["Coordination", status.cluster.coordination],
              ["Channels", status.cluster.channels],
              ["Dispatch", status.cluster.dispatch],
            ]}
          />
          <details>
            <summary>What this node promises, and what not</summary>
            <div class="columns">
              <ul>{status.guarantees.promised.map(Item)}</ul>
              <ul class="muted">{status.guarantees.not_promised.map((text) => Item(`Not: ${text}`))}</ul>
            </div>
          </details>
        </>
      )}
      {barred && <p class="note wait">{barred}</p>}
      {!barred && <ResourceNote of={settings} what="the settings" />}
      {settings.data && (
        <>
          <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
            <label>
              <span>Name</span>
              <input
                type="search"
                placeholder="press / to search"
                value={text}
                onInput={({ currentTarget }) => setText(currentTarget.value)}
              />
            </label>
            <Check label="only those that were set" checked={changed} onChange={setChanged} />
          </form>
          <Table
            label="Settings"
            rows={rows}
            keyOf={({ path }) => path}
            rowClass={(setting) => (setting.is_default ? "muted" : undefined)}
            columns={[
              ["Setting", ({ path }) => path, "mono"],
              ["Value", ({ value }) => valueText(value), "mono wide-cell"],
              ["Source", ({ source }) => source],
            ]}
            empty={<p class="muted">No setting has that in its name.</p>}
          />
        </>
      )}
    </Page>
  );
}

function Item(text: string) {
  return <li key={text}>{text}</li>;
}

function valueText(value: unknown): string {
  if (value === null || value === "") return "–";
  if (Array.isArray(value)) return value.length === 0 ? "none" : value.map(valueText).join(", ");
  return typeof value === "string" ? value : JSON.stringify(value);
}
