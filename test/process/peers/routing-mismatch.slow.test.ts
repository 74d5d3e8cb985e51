/** S86: nodes whose lists differ. Nothing goes round in circles, no wrong answer is given for sure, and everybody can see why. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { before, describe, it } from "node:test";
import { systemClock } from "../../../src/platform/clock.ts";
import { suiteScope } from "../../support/node-cleanup.ts";
import { birthplace, langidFile, PeerCluster, QUICK_PEERS } from "../../support/peer-cluster.ts";
import { BIN } from "../../support/process-node.ts";
import { eventually } from "../../support/wait.ts";

interface ProblemBody {
  readonly error: string;
  readonly owner?: string;
  readonly detail?: string;
  readonly job_id?: string;
}

describe("S86: lists of nodes that differ", { timeout: 120_000 }, () => {
  const suite = suiteScope();
  let cluster: PeerCluster;
  const jobs = new Map<string, string>();

  before(async () => {
    // Node-a has the right list, node-b has never heard of node-c, and node-c takes node-a and node-b for each other.
    const file = langidFile(({ name, names, url }) => {
      const right = Object.fromEntries(names.map((each) => [each, url(each)]));
      const { "node-c": _, ...short } = right;
      const crossed = { ...right, "node-a": url("node-b"), "node-b": url("node-a") };
      return { nodes: name === "node-c" ? crossed : name === "node-b" ? short : right };
    });
    cluster = await PeerCluster.open(suite, { file, settings: QUICK_PEERS });
    await Promise.all(cluster.names.map((name) => cluster.start(name)));
    await cluster.leader();
    for (const name of cluster.names) jobs.set(name, await cluster.jobAt(name, { task: "tick" }));
  });

  const notes = async (name: string): Promise<readonly string[]> =>
    (await cluster.node(name).client.cluster.info()).notes;

  it("are noticed by every node, and told by `baton cluster status`", async () => {
    for (const [name, others] of [
      ["node-a", ["node-b", "node-c"]],
      ["node-b", ["node-a"]],
      ["node-c", ["node-a"]],
    ] as const) {
      await eventually(`${name} to notice`, async () => {
        const text = (await notes(name)).join("\n");
        return (
          (/the list of nodes differs from that of/.test(text) &&
            others.every((each) => text.includes(each))) ||
          null
        );
      });
      const shown = spawnSync(process.execPath, [BIN, "cluster", "status", "--url", cluster.url(name)], {
        encoding: "utf8",
      });
      assert.equal(shown.status, 0, shown.stderr);
      assert.match(shown.stdout, /the list of nodes differs from that of .*; make it the same everywhere/);
    }
  });

  it("end a request that cannot be placed in an error, at once, and never in another node's answer or a 404", async () => {
    for (const via of cluster.names) {
      for (const [owner, id] of jobs) {
        const startedAt = systemClock.monotonic();
        const { status, body } = await cluster.node(via).call(`/jobs/${id}`);
        const ms = systemClock.monotonic() - startedAt;
        const { error, job_id } = body as ProblemBody;
        assert.ok(ms < 1_500, `${owner} through ${via}: ${ms} ms`);
        if (status === 200) assert.equal(job_id, id);
        else {
          assert.ok([502, 503, 508].includes(status), `${owner} through ${via}: ${status} ${error}`);
          assert.equal((body as ProblemBody).owner, owner);
        }
        if (via === owner || via === "node-a") assert.equal(status, 200, `${owner} through ${via}`);
      }
    }
    const { status, body } = await cluster.node("node-b").call(`/jobs/${jobs.get("node-c")}`);
    const { error, detail } = body as ProblemBody;
    assert.deepEqual([status, error, detail], [503, "owner_node_unreachable", "unknown_node"]);
  });

  it("cost no submit: each is stored once, wherever it was sent", async () => {
    const ids: string[] = [];
    for (const name of cluster.names) {
      for (let i = 0; i < 4; i++) ids.push((await cluster.node(name).client.submit({ task: "tick" })).job_id);
    }
    const stored = (await cluster.everyJob()).map(({ job_id }) => job_id);
    assert.deepEqual(stored.toSorted(), [...jobs.values(), ...ids].toSorted());
    for (const [name, node] of cluster.nodes)
      for (const { job_id } of await node.allJobs()) assert.equal(birthplace(job_id), name);
  });

  it("are forgotten when the list is the same everywhere again", async () => {
    const right = langidFile();
    for (const name of ["node-b", "node-c"]) {
      await cluster.terminate(name);
      await cluster.start(name, { args: ["--config", await cluster.writeFile(name, right)] });
    }
    await cluster.gathered();
    for (const name of cluster.names)
      await eventually(`${name} to be content`, async () => (await notes(name)).length === 0 || null);
    for (const via of cluster.names)
      for (const id of jobs.values()) assert.equal((await cluster.node(via).client.job(id)).job_id, id);
  });
});
