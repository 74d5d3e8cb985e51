/** A rolling deploy of real nodes whose code declares schedules, on a database and among peers. */

import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { it, type TestContext } from "node:test";
import { TestCluster, type NodeGroup } from "../../support/cluster.ts";
import { PeerCluster, QUICK_PEERS } from "../../support/peer-cluster.ts";
import { BIN } from "../../support/process.ts";
import { dataDirectory, TASKS, type NodeProcess, type ProcessOptions } from "../../support/process-node.ts";
import { eventually } from "../../support/wait.ts";

interface Fabric {
  readonly nodes: NodeGroup;
  readonly names: readonly string[];
  /** With the code of that folder. */
  readonly start: (name: string, tasks: string) => Promise<NodeProcess>;
}

/** A task of that version of the code, whose schedules are named after what becomes of them. */
async function code(t: TestContext, version: string, schedules: readonly string[]): Promise<string> {
  const directory = join(await dataDirectory(t), version);
  await mkdir(join(directory, "mail"), { recursive: true });
  await writeFile(join(directory, "package.json"), '{ "type": "commonjs" }');
  const list = schedules.map((name) => `{ name: "${name}", every: "1h", payload: "${version}" }`);
  const text = `export const schedules = [${list.join(", ")}];\nexport default (version: string) => version;\n`;
  await writeFile(join(directory, "mail", "digest.ts"), text);
  return directory;
}

const running =
  (tasks: string): NonNullable<ProcessOptions["command"]> =>
  (args) => [process.execPath, [BIN, ...args.map((arg) => (arg === TASKS ? tasks : arg))]];

const fabrics: Readonly<Record<string, (t: TestContext) => Promise<Fabric>>> = {
  "on a database": async (t) => {
    const nodes = await TestCluster.open(t);
    return { nodes, names: ["ada", "bob"], start: (name, tasks) => nodes.start(name, {}, running(tasks)) };
  },
  "among peers": async (t) => {
    const nodes = await PeerCluster.open(t, { settings: QUICK_PEERS });
    const start: Fabric["start"] = (name, tasks) => nodes.start(name, { command: running(tasks) });
    return { nodes, names: nodes.names, start };
  },
};

async function shown(node: NodeProcess): Promise<string[]> {
  const { schedules } = await node.client.schedules();
  return schedules.map(({ name, payload, origin, paused }) =>
    [name, payload, origin, ...(paused ? ["paused"] : [])].join(" "),
  );
}

for (const [where, open] of Object.entries(fabrics)) {
  it(`a rolling deploy ${where} changes schedules once, keeps those of old nodes, and pauses what is left`, async (t) => {
    const { nodes, names, start } = await open(t);
    const older = await code(t, "old", ["kept", "dropped"]);
    const newer = await code(t, "new", ["kept", "added"]);
    const first = await Promise.all(names.map((name) => start(name, older)));
    const stored = async (node: NodeProcess, wanted: readonly string[], withinMs = 30_000): Promise<void> => {
      let found: string[] = [];
      const same = async (): Promise<boolean> => {
        found = await shown(node);
        return JSON.stringify(found) === JSON.stringify(wanted);
      };
      await eventually(`schedules ${wanted.join(", ")}`, same, withinMs).catch(() => {
        assert.deepEqual(found, wanted);
      });
    };
    await stored(first[0]!, ["dropped old code", "kept old code"]);
    const [one, ...others] = names as [string, ...string[]];
    await nodes.nodes.get(one)!.terminate();
    const node = await start(one, newer);
    const during = ["added new code", "dropped old code", "kept new code"];
    await stored(node, during, 60_000);
    await nodes.nodes.get(others[0]!)!.terminate();
    await start(others[0]!, older);
    // It has looked again, and has changed nothing.
    await new Promise((resolve) => setTimeout(resolve, 5_000));
    assert.deepEqual(await shown(node), during);
    for (const name of others) {
      await nodes.nodes.get(name)!.terminate();
      await start(name, newer);
    }
    await stored(node, ["added new code", "dropped old dropped paused", "kept new code"], 150_000);
    const removed = await node.client.schedule("dropped");
    assert.match(removed.note!, /the code declares this schedule no longer/);
  });
}
