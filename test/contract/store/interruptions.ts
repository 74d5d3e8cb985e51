/** Runs that ended without their claimant's word and without its death: of agents that were switched off, or had nobody to ask. */

import assert from "node:assert/strict";
import { agentLease, leasesOf } from "../../../src/core/agent.ts";
import { DEFAULT_BUDGETS, interruptionError } from "../../../src/core/jobs/job.ts";
import type { ClaimedJob } from "../../../src/store/store.ts";
import { lease, LEASE_MS, type Promises, type StoreWorld } from "../../support/store-world.ts";
import { column, plain } from "../../support/columns.ts";

function leased(world: StoreWorld, agent: string, uuid: string, request?: string): Promise<ClaimedJob> {
  return world.running({}, { lease: agentLease(agent, request, uuid), worker: agent });
}

export const interruptionPromises: Promises = {
  "what an agent held that was switched off returns to its place at once, as an interruption": async (
    world,
  ) => {
    const run = await leased(world, "ada-worker", "1");
    const behind = await world.submit();
    await world.clock.advance(1);
    assert.deepEqual(plain(await world.recover({ by: "holders", names: [leasesOf("ada-worker")] })), [
      { id: run.id, worker: "ada-worker", status: "queued", failures: 0, interruptions: 1, crashes: 0 },
    ]);
    const job = await world.job(run.id);
    assert.equal(job.status, "queued");
    assert.equal(job.jobEpoch, run.jobEpoch + 1);
    assert.deepEqual([job.worker, job.startedAt, job.error], [null, null, null]);
    assert.deepEqual(job.killed, []);
    assert.equal(job.updatedAt, world.clock.now());
    assert.equal(job.leaderEpoch, (await world.term()).epoch);
    assert.deepEqual([job.attempts, job.failures, job.interruptions, job.crashes], [1, 0, 1, 0]);
    assert.deepEqual(await world.counts(), { queued: 2 });
    assert.equal(await world.settle(run, { kind: "completed", result: "1" }), "stale");
    assert.equal((await world.store.jobs.renew(run.lease, LEASE_MS)).held, false);
    assert.deepEqual(await world.claimIds(), [run.id, behind], "it is no suspect");
    assert.deepEqual(await world.recover({ by: "holders", names: [leasesOf("ada-worker")] }), []);
  },

  "only the leases of those holders end: of an agent all of them, of a request its own": async (world) => {
    const all = [await leased(world, "ada", "1"), await leased(world, "ada", "2", "r1")];
    const request = [await leased(world, "bob", "3", "r1"), await leased(world, "bob", "4", "r1")];
    const others = [
      await leased(world, "bob", "5"),
      await leased(world, "bob", "6", "r11"),
      await leased(world, "bob", "r2", "x"),
      await leased(world, "ada-2", "7"),
      await leased(world, "da", "8"),
      await world.running({}, { lease: lease("ada/r1") }),
      await world.running({}, { lease: lease("bob/r1/0") }),
    ];
    const names = [leasesOf("ada"), leasesOf("bob", "r1"), leasesOf("bob", "r2"), "%", "agent:", ""];
    const found = await world.recover({ by: "holders", names });
    assert.deepEqual(found.map(({ id }) => id).sort(), [...all, ...request].map(({ id }) => id).sort());
    for (const run of others)
      assert.equal((await world.store.jobs.renew(run.lease, LEASE_MS)).held, true, run.lease);
    assert.deepEqual(await world.recover({ by: "holders", names: [] }), []);
  },

  "a job that was interrupted too often fails": async (world) => {
    const budgets = { ...DEFAULT_BUDGETS, interruptionsMax: 1 };
    const id = await world.submit();
    const names = [leasesOf("ada")];
    await world.again(id, { lease: agentLease("ada", undefined, "1") });
    assert.equal((await world.recover({ by: "holders", names }, budgets))[0]!.status, "queued");
    const last = await world.again(id, { lease: agentLease("ada", undefined, "2") });
    const [recovered] = await world.recover({ by: "holders", names }, budgets);
    assert.deepEqual([recovered!.status, recovered!.interruptions], ["failed", 2]);
    const job = await world.job(id);
    assert.equal(job.status, "failed");
    assert.equal(job.finishedAt, world.clock.now());
    assert.deepEqual(
      job.error,
      interruptionError({ failures: 0, interruptions: 1, crashes: 0, maxAttempts: 5 }, budgets),
    );
    assert.deepEqual([job.interruptions, job.crashes], [2, 0]);
    assert.equal(await world.settle(last, { kind: "completed", result: "1" }), "stale");
    assert.deepEqual(await world.counts(), { failed: 1 });
  },

  "a suspect that is interrupted stays one": async (world) => {
    const id = await world.submit();
    for (const uuid of ["1", "2"]) {
      await world.again(id, { lease: lease(`node-a/${uuid}`) });
      await world.crash();
    }
    await world.again(id, { lease: agentLease("ada", undefined, "3") });
    await world.recover({ by: "holders", names: [leasesOf("ada")] });
    assert.deepEqual(await world.claimIds(), []);
    assert.deepEqual(await world.claimIds({ suspect: true }), [id]);
  },

  "leases of agents that ran out unheard were interrupted; those of nodes renew by themselves, and died":
    async (world) => {
      const agents = await leased(world, "ada", "1", "r");
      const nodes = await world.running({}, { lease: lease("node-a/1"), worker: "node-a" });
      await world.clock.advance(LEASE_MS / 2);
      const living = await leased(world, "bob", "2");
      await world.clock.advance(LEASE_MS / 2 + 1);
      const found = await world.recover({ by: "expiry", unheard: true });
      assert.deepEqual(
        new Map(found.map(({ id, interruptions, crashes }) => [id, [interruptions, crashes]])),
        new Map([
          [agents.id, [1, 0]],
          [nodes.id, [0, 1]],
        ]),
      );
      await world.finish(living);
      const later = await world.again(agents.id, { lease: agents.lease });
      await world.clock.advance(LEASE_MS + 1);
      const [heard] = await world.recover();
      assert.deepEqual([heard!.id, heard!.interruptions, heard!.crashes], [later.id, 1, 1]);
    },

  "a node that has the store to itself leaves agents what they hold": async (world) => {
    const agents = await leased(world, "ada", "1");
    const earlier = await world.running({}, { lease: lease("node-a/1"), worker: "node-a" });
    const found = await world.recover({ by: "everybody", except: "2" });
    assert.deepEqual(column(found, "id"), [earlier.id]);
    assert.equal((await world.store.jobs.renew(agents.lease, LEASE_MS)).held, true);
    await world.finish(agents);
  },
};
