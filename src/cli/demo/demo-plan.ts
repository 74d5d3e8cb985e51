/** The plan of the three nodes of `baton demo`: names, ports, directories, and a configuration file for each. */

import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { stringify } from "yaml";
import { SHOP } from "./demo-seed.ts";
import type { DemoSeed } from "./demo-seed.ts";
import { isRequested, SupervisedChild } from "../../supervisor/supervised-child.ts";
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
  /** What `baton start --config` is given. */
  readonly config: string;
  readonly log: string;
}

export interface DemoFiles {
  readonly directory: string;
  readonly ports: readonly number[];
  readonly tasks: readonly string[];
  readonly secret: string;
}

/** One free port for each node, from `first` upwards. */
export async function demoPorts(first: number, explicit: boolean): Promise<number[]> {
  const ports: number[] = [];
  for (const _ of DEMO_NODES) {
    const from = ports.length === 0 ? first : ports.at(-1)! + 1;
    ports.push(await choosePort({ host: DEMO_HOST, port: from, explicit: explicit && ports.length === 0 }));
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

export interface DemoChildOptions {
  readonly plan: Pick<DemoNodePlan, "name" | "log">;
  /** What to run, after the runtime: the launcher, `start`, its arguments. */
  readonly args: readonly string[];
  readonly terminal: Pick<Terminal, "cwd" | "environment" | "clock">;
  /** It ended, and we had not asked it to: "SIGKILL", or "code 1". It is started again after a pause. */
  readonly onEnd: (how: string) => void;
}

/**
 * A node: a real process in its own group, so that Ctrl-C reaches the demo and not the nodes. It ends with the demo even
 * when that is killed with -9: the launcher watches the channel between the two.
 */
export function demoChild({ plan, args, terminal, onEnd }: DemoChildOptions): SupervisedChild {
  // Settings for one node must not reach three.
  const kept = Object.entries(terminal.environment).filter(([name]) => !/^(?:BATON|LANGID)_/.test(name));
  const environment = { ...Object.fromEntries(kept), BATON_LAUNCHER: String(process.pid) };
  const quiet = (): void => {};
  const child: SupervisedChild = new SupervisedChild({
    name: plan.name,
    command: () => ({
      file: process.execPath,
      args,
      environment,
      channel: true,
      cwd: terminal.cwd,
      logFile: plan.log,
    }),
    restarts: { firstDelayMs: DEMO_RESTART_MS, delayMsMax: DEMO_RESTART_MS, degradedAfter: Infinity },
    clock: terminal.clock,
    log: { info: quiet, warn: quiet, error: quiet },
    onChange: quiet,
    onExit: () => {
      const { lastExit } = child;
      if (lastExit === null || isRequested(lastExit)) return;
      onEnd(lastExit.signal ?? (lastExit.code === null ? lastExit.reason : `code ${lastExit.code}`));
    },
  });
  return child;
}

export interface DemoTasks {
  readonly folders: readonly string[];
  /** One of them with a payload, to show how a job is submitted. */
  readonly example: { readonly task: string; readonly payload: string };
  /** What to begin with; null for nothing. */
  readonly seed: DemoSeed | null;
}

/** The examples of a checkout; a package has none, and gets a task of two lines. */
export function demoTasks(directory: string): DemoTasks {
  const examples = fileURLToPath(new URL("../../../examples", import.meta.url));
  if (existsSync(join(examples, "langid", "tasks"))) {
    return {
      folders: ["langid", "hello", "shop"].map((name) => join(examples, name, "tasks")),
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
