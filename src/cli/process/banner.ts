/** The banner of a started node: its address, its guarantees, and commands to try. */

import { relative } from "node:path";
import type { Settings } from "../../config/settings.ts";
import { maskedUrl } from "../../config/values/secret-url.ts";
import type { TaskInfo } from "../../jobs/tasks/task-registry.ts";
import type { Guarantees } from "../../store/store.ts";
import { VERSION } from "../../platform/version.ts";
import { say, styled, type Terminal } from "../terminal/terminal.ts";

export interface Started {
  readonly settings: Pick<Settings, "name" | "data" | "store" | "roles"> & {
    readonly redis: Pick<Settings["redis"], "url">;
    readonly etcd: Pick<Settings["etcd"], "url">;
  };
  readonly url: string;
  readonly tasks: readonly Pick<TaskInfo, "name" | "hasSchema">[];
  readonly guarantees: Guarantees;
  readonly peers: string | null;
  readonly access: string | null;
  readonly warnings: readonly string[];
}

const PROMISES: Readonly<Record<Guarantees["durability"], string>> = {
  nothing: "jobs are gone when this process ends",
  "process crash": "acknowledged jobs survive a crash of this process",
  "power loss": "acknowledged jobs survive crashes and power loss",
};

export function showBanner(terminal: Terminal, started: Started): void {
  const { err } = terminal;
  for (const warning of started.warnings) say(terminal, styled(err, ["bold", "red"], `WARNING ${warning}`));
  if (!err.isTTY) {
    say(terminal, `baton is listening on ${started.url}`);
    if (started.access !== null) say(terminal, `access: ${started.access}`);
    say(terminal, `try: ${submitCommand(terminal, started)}`);
    return;
  }
  const { settings, url, peers, access } = started;
  const { name } = settings;
  const [redis, etcd] = [maskedUrl(settings.redis.url), maskedUrl(settings.etcd.url)];
  const show = (rows: readonly (readonly [label: string, text: string | null])[]): void => {
    for (const [label, text] of rows)
      if (text) say(terminal, `  ${styled(err, "dim", label.padEnd(9))} ${text}`);
    say(terminal, "");
  };
  say(terminal, `\n  ${styled(err, "bold", `Baton ${VERSION}`)}  node ${styled(err, "bold", name)}\n`);
  show([
    ["url", `${styled(err, "cyan", url)}  (API at ${url}/docs)`],
    ["store", storeText(terminal, started)],
    ["redis", redis && `${redis}: elects, carries messages and jobs`],
    ["etcd", etcd && `${etcd}: elects the leader`],
    ["cluster", peers],
    ["access", access],
    ["tasks", tasksText(started)],
  ]);
  show([
    ["try", submitCommand(terminal, started)],
    ["", curlCommand(started)],
    ["stop", "Ctrl-C finishes what runs; twice stops now"],
  ]);
}

function storeText(terminal: Terminal, { guarantees, settings: { data, store } }: Started): string {
  if (guarantees.shared) return `${maskedUrl(store)}: ${PROMISES[guarantees.durability]}`;
  const near = relative(terminal.cwd, data);
  const place =
    guarantees.durability === "nothing" ? "" : ` in ${near.startsWith("..") ? data : near || "."}`;
  return `${guarantees.name}${place}: ${PROMISES[guarantees.durability]}`;
}

function tasksText({ tasks }: Started): string {
  if (tasks.length === 0) return "none; put modules into a directory and start with --tasks DIR";
  const shown = tasks.slice(0, 8).map((task) => task.name);
  return shown.join(", ") + (tasks.length > shown.length ? ` and ${tasks.length - shown.length} more` : "");
}

/** One that takes any payload, if there is one: a command to try should not be refused. */
function taskToTry({ tasks, settings }: Started): string | null {
  if (!settings.roles.includes("gateway")) return null;
  return (tasks.find((task) => !task.hasSchema) ?? tasks[0])?.name ?? null;
}

function submitCommand(terminal: Terminal, started: Started): string {
  const command = invocation(terminal);
  const task = taskToTry(started);
  // Only the default URL can be left out.
  const url = started.url === "http://127.0.0.1:8420" ? "" : ` --url ${started.url}`;
  return task ? `${command} submit ${task} '{}' --wait${url}` : `${command} status${url}`;
}

function curlCommand(started: Started): string {
  const task = taskToTry(started);
  if (task === null) return `curl ${started.url}/health`;
  const body = JSON.stringify({ task, payload: {} });
  const token = started.access === null ? "" : ' -H "authorization: Bearer $BATON_TOKEN"';
  return `curl ${started.url}/jobs${token} -H 'content-type: application/json' -d '${body}'`;
}

/** What to type for another command: people in a checkout have no `baton` on their path. */
export function invocation(terminal: Pick<Terminal, "cwd">): string {
  const script = relative(terminal.cwd, process.argv[1] ?? "");
  return script.endsWith("baton.mjs") && !script.startsWith("..") && !script.includes("node_modules")
    ? `node ${script}`
    : "baton";
}
