/** The plan of the three nodes of `baton demo`: names, ports, directories, and a configuration file for each. */

import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { stringify } from "yaml";
import { SHOP } from "./demo-seed.ts";
import type { DemoSeed } from "./demo-seed.ts";
import { choosePort } from "../process/port.ts";

export const DEMO_NODES = ["node-a", "node-b", "node-c"] as const;
export const DEMO_HOST = "127.0.0.1";
/** Nobody waits half a minute for a demonstration to end. */
export const DEMO_DRAIN_MS = 2_000;

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
