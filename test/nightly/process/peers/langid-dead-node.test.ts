/** A node that is gone or hangs: what it costs the others and their callers, and how it comes back. Each rule is in test/unit/http and test/unit/peers. */

import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import { systemClock } from "../../../../src/platform/clock.ts";
import { suiteScope } from "../../../support/node-cleanup.ts";
import { birthplace, langidFile, PeerCluster, statuses } from "../../../support/peer-cluster.ts";
import { eventually } from "../../../support/wait.ts";
import { column } from "../../../support/columns.ts";

interface RefusalBody {
  readonly error: string;
  readonly owner?: string;
}

async function timed<T>(work: () => Promise<T>): Promise<{ ms: number; value: T }> {
  const startedAt = systemClock.monotonic();
  const value = await work();
  return { ms: systemClock.monotonic() - startedAt, value };
}

/** Of calls between nodes. Whoever waits for one that is gone waits for so long, and the time of anything else depends on the machine. */
const TIMEOUT_MS = 5_000;

const worst = (all: readonly { ms: number }[]): number => Math.round(Math.max(...all.map(({ ms }) => ms)));

describe("a node of three that dies, and one that hangs", { timeout: 120_000 }, () => {
  const suite = suiteScope();
  let cluster: PeerCluster;
  let finished: string;
  let held: string;

  before(async () => {
    const file = langidFile({ health_check_interval_seconds: 1 });
    cluster = await PeerCluster.start(suite, { file });
    finished = await cluster.jobAt("node-b", { task: "work", payload: { ms: 0 } });
    held = await cluster.jobAt("node-b", { task: "work", payload: { ms: 5_000 } });
    await cluster.node("node-b").jobWhen(finished, ({ status }) => status === "completed");
    await cluster.node("node-b").processing(held);
    await cluster.kill("node-b");
  });

  const others = () => [cluster.node("node-a"), cluster.node("node-c")];
  const submits = async (count: number) => {
    const all = [];
    for (let i = 0; i < count; i++) {
      const node = others()[i % 2]!;
      all.push(await timed(async () => (await node.client.submit({ task: "tick" })).job_id));
    }
    return all;
  };

  it("dead, costs no submit, not even those that come before it is noticed", async (t) => {
    const all = await submits(12);
    t.diagnostic(`slowest of 12 submits right behind kill -9: ${worst(all)} ms`);
    for (const { value } of all) assert.notEqual(birthplace(value), "node-b");
    assert.ok(worst(all) < TIMEOUT_MS);
  });

  it("dead, is back by being started again: its jobs, what it was running, its turn", async () => {
    await cluster.restart("node-b");
    for (const node of others()) {
      assert.deepEqual((await node.client.result(finished)).result, { epoch: 1 });
      const { nodes, partial } = await node.client.cluster.jobs();
      assert.deepEqual([partial, nodes.every(({ reachable }) => reachable)], [false, true]);
    }
    const again = await cluster.node("node-a").jobWhen(held, ({ status }) => status !== "queued");
    assert.ok(again.job_epoch > 1, "taken up again under a new epoch");
    const owners = (await submits(6)).map(({ value }) => birthplace(value));
    assert.equal(owners.filter((name) => name === "node-b").length, 2, owners.join(" "));
  });

  it("S88, S94: hanging, costs a caller no more than its patience, and a list 1.5 s", async (t) => {
    const node = cluster.node("node-a");
    cluster.node("node-b").signal("SIGSTOP");
    const { ms, value } = await timed(() => node.client.cluster.jobs());
    t.diagnostic(`the list took ${Math.round(ms)} ms`);
    assert.ok(ms < TIMEOUT_MS, `the list took ${ms} ms`);
    assert.equal(value.partial, true);
    assert.deepEqual(column(value.nodes, "reachable"), [true, false, true]);
    const all = await Promise.all(
      Array.from({ length: 100 }, () =>
        timed(() => node.call(`/jobs/${finished}`, { headers: { "x-baton-deadline-ms": "1000" } })),
      ),
    );
    t.diagnostic(`slowest of 100 reads with a patience of 1000 ms: ${worst(all)} ms`);
    for (const { value: reply } of all) {
      const { error, owner } = reply.body as RefusalBody;
      assert.equal(owner, "node-b");
      assert.ok(
        (reply.status === 504 && error === "DEADLINE") ||
          (reply.status === 503 && error === "owner_node_unreachable"),
        `${reply.status} ${error}`,
      );
    }
    assert.ok(all.some(({ value: reply }) => reply.status === 504));
    assert.ok(worst(all) < TIMEOUT_MS);

    // Of those that know nothing of deadlines, by the time-out of the file.
    const late = await node.call(`/jobs/${finished}`);
    assert.ok(late.status === 503 || late.status === 504);
  });

  it("hanging, is noticed, passed over like a dead one, and there again when it goes on", async (t) => {
    for (const viewer of ["node-a", "node-c"]) {
      await eventually(
        `${viewer} to notice`,
        async () => (await statuses(cluster.node(viewer)))["node-b"] !== "active",
        20_000,
      );
    }
    const all = [];
    for (let i = 0; i < 8; i++) {
      const node = cluster.node(i % 2 === 0 ? "node-a" : "node-c");
      all.push(await timed(async () => (await node.client.submit({ task: "tick" })).job_id));
    }
    t.diagnostic(`slowest of 8 submits past a node known to hang: ${worst(all)} ms`);
    assert.ok(all.every(({ value }) => birthplace(value) !== "node-b"));
    assert.ok(worst(all) < TIMEOUT_MS);
    const { ms, value } = await timed(() => cluster.node("node-c").client.cluster.jobs());
    assert.ok(ms < TIMEOUT_MS && value.partial, "nobody waits for it twice");

    cluster.node("node-b").signal("SIGCONT");
    await cluster.gathered();
    assert.equal((await cluster.node("node-a").client.job(finished)).status, "completed");
    assert.equal((await cluster.node("node-c").client.cluster.jobs()).partial, false);
  });
});
