/** Restarts of nodes: where the round goes on, what becomes of a broken state file, and an upgrade of all nodes while jobs come in. */

import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { before, describe, it } from "node:test";
import { assertNothingLost, Callers } from "../../support/cluster.ts";
import { atEnd, suiteScope } from "../../support/node-cleanup.ts";
import { birthplace, langidFile, PeerCluster, QUICK_PEERS } from "../../support/peer-cluster.ts";
import type { NodeProcess } from "../../support/process-node.ts";
import { eventually } from "../../support/wait.ts";

const ABC = ["node-a", "node-b", "node-c"];

describe("nodes that are started again", { timeout: 120_000 }, () => {
  const suite = suiteScope();
  let cluster: PeerCluster;

  before(async () => {
    const file = langidFile({ rr_strategy: "per-node", rr_state_file: "state/rr.json" });
    cluster = await PeerCluster.open(suite, { file, settings: QUICK_PEERS });
    // Of node-a the state is corrupt, of node-b it cannot be written, and node-c has none yet.
    await mkdir(join(cluster.directory, "node-a.files", "state"), { recursive: true });
    await writeFile(stateFile("node-a"), '{"index": -3');
    await mkdir(stateFile("node-b"), { recursive: true });
    await cluster.startAll();
  });

  const stateFile = (name: string): string => join(cluster.directory, `${name}.files`, "state", "rr.json");
  const warnings = (node: NodeProcess): string[] =>
    `${node.stdout}${node.stderr}`
      .split("\n")
      .filter((line) => line.includes('"warn"') && line.includes("position of the round"));
  const submit = async (name: string): Promise<string> =>
    birthplace((await cluster.node(name).client.submit({ task: "tick" })).job_id);
  const after = (name: string): string => ABC[(ABC.indexOf(name) + 1) % 3]!;

  it("S91: warn of a state file that is corrupt or cannot be written, start somewhere in the round and go on", async () => {
    for (const name of ABC) {
      let last = await submit(name);
      for (let i = 0; i < 6; i++) assert.equal(await submit(name), (last = after(last)));
    }
    assert.match(warnings(cluster.node("node-a")).join("\n"), /no position of the round could be read/);
    assert.equal(warnings(cluster.node("node-b")).length, 1, "said once");
    assert.deepEqual(warnings(cluster.node("node-c")), []);
    for (const name of ["node-a", "node-c"]) {
      await eventually(`${name} to have written its position`, async () => {
        const text = await readFile(stateFile(name), "utf8").catch(() => "");
        return /^\{"index":\d+\}\s*$/.test(text) || null;
      });
    }
  });

  it("go on in the round where they were, stopped or killed", async () => {
    let last = await submit("node-a");
    await cluster.terminate("node-a");
    await cluster.restart("node-a");
    assert.equal(await submit("node-a"), (last = after(last)), "told to stop");

    const written = async (): Promise<number> =>
      (JSON.parse(await readFile(stateFile("node-a"), "utf8")) as { index: number }).index;
    const before = await written();
    assert.equal(await submit("node-a"), (last = after(last)));
    await eventually("the position to be written behind", async () => (await written()) > before || null);
    await cluster.kill("node-a");
    await cluster.restart("node-a");
    assert.equal(await submit("node-a"), after(last), "killed with -9");
  });

  it("lose nothing and refuse nothing for good when all are restarted one by one while jobs come in", async (t) => {
    const callers = new Callers(
      () => [...cluster.nodes.values()],
      () => ({ task: "work", payload: { ms: 30 } }),
    );
    atEnd(suite, () => callers.abandon());
    callers.start(6, 20);
    for (const name of ABC) {
      const flowing = callers.acknowledged.size;
      await eventually("jobs to flow", async () => callers.acknowledged.size > flowing + 20 || null);
      await cluster.terminate(name);
      const without = callers.acknowledged.size;
      await eventually(
        "jobs to flow without it",
        async () => callers.acknowledged.size > without + 20 || null,
      );
      await cluster.restart(name);
    }
    await callers.stop();
    await Promise.all([...cluster.nodes.values()].map((node) => node.idle()));
    const jobs = await cluster.everyJob();
    t.diagnostic(
      `${callers.acknowledged.size} jobs acknowledged, ${callers.refusals} tries refused meanwhile`,
    );
    assertNothingLost(callers, jobs);
    assert.deepEqual(
      jobs.filter(({ status, task }) => task === "work" && status !== "completed"),
      [],
    );
    for (const name of ABC) assert.ok(jobs.some(({ job_id }) => birthplace(job_id) === name));
  });

  it("keep every job where it was submitted when the file does not switch the rotation on", async () => {
    const plain = langidFile({ enable_round_robin: undefined, rr_strategy: undefined });
    await cluster.terminate("node-a");
    await cluster.restart("node-a", { args: ["--config", await cluster.writeFile("node-a", plain)] });
    for (let i = 0; i < 4; i++) assert.equal(await submit("node-a"), "node-a");
  });
});
