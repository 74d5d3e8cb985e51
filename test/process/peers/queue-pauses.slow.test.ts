/** A queue is paused for the whole cluster: also on a node that was away, and only if a majority can store it. */

import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import { suiteScope } from "../../support/node-cleanup.ts";
import { PeerCluster } from "../../support/peer-cluster.ts";

describe("a queue that is paused among peers", () => {
  const suite = suiteScope();
  let cluster: PeerCluster;
  const setPaused = (name: string, paused: boolean) =>
    cluster.node(name).call(`/queues/mail/${paused ? "pause" : "resume"}`, { method: "POST" });

  before(async () => {
    cluster = await PeerCluster.start(suite);
  });

  it("stays paused on a node that was away, from its first moment", async () => {
    const { name: leader } = await cluster.leader();
    const [away, other] = cluster.names.filter((name) => name !== leader) as [string, string];
    const work = { task: "work", payload: { ms: 0 } };
    const waits = await cluster.jobAt(away, { ...work, queue: "mail", delay_ms: 4_000 });
    await cluster.kill(away);
    const { status, body } = await setPaused(other, true);
    assert.equal(status, 200, JSON.stringify(body));
    await cluster.restart(away);
    await cluster.node(away).jobWhen(waits, (job) => job.status !== "scheduled");
    const runs = await cluster.jobAt(away, { ...work, queue: "other" });
    await cluster.node(away).jobWhen(runs, (job) => job.status === "completed");
    const { body: job } = await cluster.node(away).call(`/jobs/${waits}`);
    assert.equal((job as { status: string }).status, "queued");
    const { body: listed } = await cluster.node(away).call("/queues");
    const { queues } = listed as { queues: { name: string; paused: boolean }[] };
    assert.equal(queues.find(({ name }) => name === "mail")?.paused, true);
    await setPaused(away, false);
    await cluster.node(away).jobWhen(waits, (each) => each.status === "completed");
  });

  it("is not paused without a majority, and the error says what to do", async () => {
    const { name: last } = await cluster.leader();
    for (const name of cluster.names) if (name !== last) await cluster.kill(name);
    const { status, body } = await setPaused(last, true);
    assert.equal(status, 503, JSON.stringify(body));
    assert.match((body as { message: string }).message, /majority|2 are needed/);
  });
});
