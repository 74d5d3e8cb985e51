/** The plan of the three nodes of `baton demo`: ports, files, processes, and the first jobs and schedules. */

import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { FOREIGN_FILE_VARIABLE } from "../../config/sources/dialects/dialects.ts";
import { silentLog } from "../../platform/log.ts";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { stringify } from "yaml";
import { isRequested, SupervisedChild } from "../../supervisor/supervised-child.ts";
import type { JobRequestBody, NamedScheduleRequest } from "../../client/baton-client.ts";
import { choosePort } from "../process/port.ts";
import type { Terminal } from "../terminal/terminal.ts";

export const DEMO_NODES = ["node-a", "node-b", "node-c"] as const;
export const DEMO_HOST = "127.0.0.1";
/** A demonstration should not take half a minute to end. */
export const DEMO_DRAIN_MS = 2_000;
/** Long enough to see that the others go on without it. */
export const DEMO_RESTART_MS = 5_000;

export interface DemoNodePlan {
  readonly name: string;
  readonly url: string;
  readonly config: string;
  readonly log: string;
}

interface DemoFiles {
  readonly directory: string;
  readonly ports: readonly number[];
  readonly tasks: readonly string[];
  readonly secret: string;
}

export async function demoPorts(first: number, explicit: boolean): Promise<number[]> {
  const ports: number[] = [];
  for (const _ of DEMO_NODES) {
    const from = ports.length === 0 ? first : ports.at(-1)! + 1;
    ports.push(await choosePort(DEMO_HOST, from, explicit && ports.length === 0));
  }
  return ports;
}

/** Files with the secret in them, so they are for their owner alone. */
export function writeDemoFiles({ directory, ports, tasks, secret }: DemoFiles): DemoNodePlan[] {
  const nodes = Object.fromEntries(
    DEMO_NODES.map((name, index) => [name, `http://${DEMO_HOST}:${ports[index]!}`]),
  );
  return DEMO_NODES.map((name) => {
    const config = join(directory, `${name}.yaml`);
    const settings = {
      name,
      data: join(directory, name),
      tasks,
      nodes,
      placement: { strategy: "global" },
      cluster: { name: "demo", secret },
      drain: { timeout: `${DEMO_DRAIN_MS}ms`, cleanup: "1s" },
      log: { format: "json" },
    };
    writeFileSync(config, stringify(settings), { mode: 0o600 });
    return { name, url: nodes[name]!, config, log: join(directory, `${name}.log`) };
  });
}

/** A node, in a process group of its own so that Ctrl-C reaches only the demo. The launcher ends it with the demo, also after kill -9. */
export function demoChild(
  { name, log: logFile }: Pick<DemoNodePlan, "name" | "log">,
  args: readonly string[],
  { cwd, environment: given, clock }: Pick<Terminal, "cwd" | "environment" | "clock">,
  onEnd: (how: string) => void,
): SupervisedChild {
  // Settings for one node must not reach three.
  const kept = Object.entries(given).filter(
    ([variable]) => !variable.startsWith("BATON_") && variable !== FOREIGN_FILE_VARIABLE,
  );
  const environment = { ...Object.fromEntries(kept), BATON_LAUNCHER: String(process.pid) };
  const command = { file: process.execPath, args, environment, channel: true, cwd, logFile };
  const child: SupervisedChild = new SupervisedChild(
    { clock, log: silentLog },
    {
      name,
      command: () => command,
      restarts: { firstDelayMs: DEMO_RESTART_MS, delayMsMax: DEMO_RESTART_MS, degradedAfter: Infinity },
      onChange: () => {},
      onExit: () => {
        const { lastExit } = child;
        if (lastExit === null || isRequested(lastExit)) return;
        onEnd(lastExit.signal ?? (lastExit.code === null ? lastExit.reason : `code ${lastExit.code}`));
      },
    },
  );
  return child;
}

export interface DemoTasks {
  readonly folders: readonly string[];
  readonly example: { readonly task: string; readonly payload: string };
  readonly seed: DemoSeed | null;
}

/** The examples of a checkout; a package has none, and gets a task of two lines. */
export function demoTasks(directory: string): DemoTasks {
  const examples = fileURLToPath(new URL("../../../examples", import.meta.url));
  if (existsSync(join(examples, "languages", "tasks"))) {
    return {
      folders: ["languages", "hello", "shop"].map((name) => join(examples, name, "tasks")),
      example: { task: "identify-language", payload: '{"text":"Wo ist der Bahnhof?"}' },
      seed: SHOP,
    };
  }
  const folder = join(directory, "tasks");
  mkdirSync(folder);
  writeFileSync(
    join(folder, "hello.mjs"),
    'export default async (payload) => `Hello, ${payload?.name ?? "world"}!`;\n',
  );
  return { folders: [folder], example: { task: "hello", payload: '{"name":"Ada"}' }, seed: null };
}

export interface DemoSeed {
  readonly jobs: readonly JobRequestBody[];
  readonly schedules: readonly NamedScheduleRequest[];
}

const mail = (to: string, subject: string): JobRequestBody => ({
  task: "send-mail",
  queue: "mail",
  payload: { to, subject },
  max_attempts: 1,
});

/** Chosen so that every state is visible: completed, running, failed, scheduled, and a job that waits for an unknown task. */
const SHOP: DemoSeed = {
  jobs: [
    ...["ada", "grace", "edsger", "barbara", "donald", "leslie"].map((name) =>
      mail(`${name}@example.org`, "Your order is on its way"),
    ),
    ...["old", "gone", "typo"].map((name) => mail(`customer@${name}.invalid`, "Your invoice")),
    { task: "import-orders", payload: { shop: "berlin", pages: 45 } },
    { task: "import-orders", payload: { shop: "oslo", pages: 180 } },
    { task: "hello", payload: { name: "tomorrow" }, delay_ms: 24 * 3_600_000 },
    { task: "print-invoice", payload: { order: 4711 }, allow_unknown: true },
  ],
  schedules: [
    { name: "greeting", task: "hello", every_ms: 20_000, payload: { name: "schedule" } },
    { name: "lisbon-nightly", task: "import-orders", cron: "30 2 * * *", payload: { shop: "lisbon" } },
  ],
};
