/** A node alone that is killed, or has a handler that never gives its event loop back. One that stands still: elector-faults, test/conformance. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { dataDirectory, NodeProcess } from "../support/process-node.ts";
import { eventually } from "../support/wait.ts";

/** Every run so far left its line. A line is stored soon after it is written, not at once: a kill waits for it. */
function holding(node: NodeProcess, id: string, runs: number): Promise<unknown> {
  return eventually(`a line of each of ${runs} runs`, async () => {
    const { logs } = await node.client.logs(id);
    return logs.filter(({ message }) => message === "holding").length === runs;
  });
}

describe("a node that is killed while it runs a job", () => {
  it("runs it again at once after the next start, and after the third time not at all", async (t) => {
    const data = await dataDirectory(t);
    // Longer than anything is waited for here: no run is taken up again because a lease has ended.
    const settings = { WORKER__LEASE: "2m" };
    let node = await NodeProcess.start(t, { data, settings });
    const { job_id: id } = await node.client.submit({ task: "hold", max_attempts: 1 });
    const epochs: number[] = [];
    const leaderEpochs: number[] = [];
    for (let crashes = 0; crashes < 3; crashes++) {
      const job = await node.processing(id);
      assert.deepEqual([job.attempts, job.crashes, job.failures], [crashes + 1, crashes, 0]);
      assert.deepEqual(job.killed, Array(crashes).fill("solo"));
      epochs.push(job.job_epoch);
      leaderEpochs.push((await node.client.role()).leader_epoch!);
      await holding(node, id, crashes + 1);
      await node.kill();
      node = await NodeProcess.start(t, { data, settings });
    }
    assert.ok(epochs[0]! < epochs[1]! && epochs[1]! < epochs[2]!, "each run has a higher epoch");
    assert.deepEqual(leaderEpochs, [1, 2, 3], "and each life of the leader too");
    const job = await node.client.job(id);
    assert.deepEqual([job.status, job.crashes, job.failures], ["failed", 3, 0]);
    assert.equal(job.error?.code, "QUARANTINED");
    assert.match(job.error.message, /solo, solo, solo/);
    assert.deepEqual(job.killed, ["solo", "solo", "solo"]);

    await node.client.retry(id);
    const retried = await node.processing(id);
    assert.deepEqual([retried.crashes, retried.killed], [0, []]);
    await holding(node, id, 4);
  });

  it("keeps results, runs its jobs again also under another name, and carries out cancellations, after the next start", async (t) => {
    const data = await dataDirectory(t);
    const first = await NodeProcess.start(t, { data });
    const { job_id: ended } = await first.client.submit({ task: "work", payload: { ms: 0 } });
    const { job, result } = await first.client.wait(ended, { timeoutMs: 30_000 });
    const { job_id: held } = await first.client.submit({ task: "hold" });
    const { job_id: unwanted } = await first.client.submit({ task: "deaf" });
    for (const id of [held, unwanted]) await first.processing(id);
    await first.client.cancel(unwanted, "no longer needed");
    await first.kill();
    // As a container has another name after each start.
    const second = await NodeProcess.start(t, { data, name: "renamed" });
    assert.deepEqual((await second.client.result(ended)).result, result);
    const kept = await second.client.job(ended);
    assert.deepEqual([kept.job_epoch, kept.attempts], [job.job_epoch, 1]);
    const again = await second.processing(held);
    assert.deepEqual(
      [again.attempts, again.crashes, again.killed, again.worker],
      [2, 1, ["solo"], "renamed"],
    );
    const cancelled = await second.client.job(unwanted);
    assert.deepEqual([cancelled.status, cancelled.error?.message], ["cancelled", "no longer needed"]);
  });
});

/** Nothing is answered meanwhile, which is what a liveness probe is for. */
it("a blocked event loop leaves /livez unanswered, and it answers again when it turns again", async (t) => {
  const node = await NodeProcess.start(t, { data: await dataDirectory(t) });
  const alive = async (): Promise<number | null> => {
    try {
      const answer = await fetch(`${node.url}/livez`, { signal: AbortSignal.timeout(1_000) });
      await answer.body?.cancel();
      return answer.status;
    } catch {
      return null;
    }
  };
  await eventually("an answer", async () => (await alive()) === 200);
  const answer = await fetch(`${node.url}/workz`);
  assert.equal(((await answer.json()) as { code: string }).code, "working");
  // The handler may block the loop before the submit is answered.
  const submitted = node.client.submit({ task: "block", payload: { ms: 3_000 } });
  await eventually("silence", async () => (await alive()) === null);
  await submitted;
  await eventually("an answer", async () => (await alive()) === 200, 20_000);
});
