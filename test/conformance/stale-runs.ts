/** 9.5: job_epoch rejects stale work, and the right owner may repeat itself (S64). */

import assert from "node:assert/strict";
import { it } from "node:test";
import { resultOf } from "../support/controller-calls.ts";
import { eventually } from "../support/wait.ts";
import type { Suite } from "./suite.ts";

/** Of agents. The second one has to be done within it, also on a busy machine. */
const LEASE = "4s";

export function staleRuns({ open }: Suite): void {
  it("9.5 a job whose lease ran out is leased again under a higher job_epoch, and only that one counts", async (t) => {
    const cluster = await open(t, "calm", { agentsLease: LEASE });
    const { leader } = await cluster.settled();
    const at = cluster.at(leader.name);
    const id = await at.submit();
    const first = await at.lease({ agent: "ada" });
    const late = resultOf(first, { agent: "ada", result: "late" });
    await eventually("the lease to run out", async () => (await at.job(id)).status === "queued", 30_000);
    const atOnce = await at.post("/v1/results", late);
    assert.deepEqual([atOnce.status, atOnce.body.error], [409, "STALE_EPOCH"], JSON.stringify(atOnce.body));

    const second = await at.lease({ agent: "bob" });
    const { job_id, job_epoch } = second.tasks[0]!;
    assert.equal(job_id, id);
    assert.ok(job_epoch > first.tasks[0]!.job_epoch, `${job_epoch} after ${first.tasks[0]!.job_epoch}`);

    const before = await cluster.stored();
    const good = resultOf(second, { agent: "bob", result: { by: "bob" } });
    const refused: readonly [what: string, body: object][] = [
      ["the old run", late],
      ["the old lease with the new epoch", { ...late, job_epoch }],
      ["the new lease with the old epoch", { ...good, job_epoch: first.tasks[0]!.job_epoch }],
      ["an epoch that was never given out", { ...good, job_epoch: job_epoch + 1 }],
      ["no job_epoch", { ...good, job_epoch: undefined }],
      ["no leader_epoch", { ...good, leader_epoch: undefined }],
      ["another term", { ...good, leader_epoch: leader.epoch + 1 }],
    ];
    const told = await Promise.all(refused.map(([, body]) => at.post("/v1/results", body)));
    const { status: _status, agent: _agent, result: _result, ...run } = late as Record<string, unknown>;
    const logs = await at.post("/v1/logs", { ...run, lines: [{ message: "late" }] });
    const renewal = await at.post("/v1/leases/renew", { agent: "ada", lease_id: first.lease_id });
    const after = await cluster.stored();
    const accepted = await at.post("/v1/results", good);

    told.forEach(({ status, body }, n) => {
      const [what] = refused[n]!;
      const { error, alias, job_id: named } = body;
      assert.deepEqual(
        [status, error, alias, named],
        [409, "STALE_EPOCH", "STALE_LEASE", id],
        `${what}: ${JSON.stringify(body)}`,
      );
    });
    assert.deepEqual([logs.status, logs.body.error], [409, "STALE_EPOCH"]);
    assert.deepEqual([renewal.status, renewal.body.error], [409, "STALE_EPOCH"]);
    assert.deepEqual(after, before, "what was refused has changed nothing");
    assert.deepEqual(
      [accepted.status, accepted.body],
      [200, { job_id: id, accepted: true, status: "completed", leader_epoch: leader.epoch }],
    );

    const done = await cluster.stored();
    for (let turn = 0; turn < 3; turn++) {
      const again = await at.post("/v1/results", good);
      assert.deepEqual([again.status, again.body], [200, accepted.body]);
    }
    const [inAList] = (await at.post("/v1/results", [good])).body;
    assert.deepEqual(inAList, accepted.body);
    const loser = await at.post("/v1/results", late);
    assert.deepEqual([loser.status, loser.body.error], [409, "STALE_EPOCH"]);
    assert.deepEqual(await cluster.stored(), done, "no second transition");
    const { result } = (await at.get(`/jobs/${id}/result`)).body;
    assert.deepEqual([result, (await at.job(id)).job_epoch], [{ by: "bob" }, job_epoch]);
  });
}
