/** Writes that anybody may make, made by a leader under its term. */

import assert from "node:assert/strict";
import type { Term } from "../../../src/core/leadership/term.ts";
import type { ClaimedJob, ClaimRequest, Outcome, Report, Run } from "../../../src/store/store.ts";
import {
  AUTHOR,
  ERROR,
  HOUR_MS,
  lease,
  LEASE_MS,
  NODE,
  type Promises,
  reportRuns,
  settleRuns,
  STOPPED_ERROR,
  type StoreWorld,
} from "../../support/store-world.ts";
import { column } from "../../support/columns.ts";

const refused = { code: "STALE_EPOCH" };

const OUTCOMES: readonly Outcome[] = [
  { kind: "completed", result: "null" },
  { kind: "completed", result: '{"n":1}' },
  { kind: "failed", error: ERROR, spends: "failure" },
  { kind: "cancelled", error: STOPPED_ERROR },
  { kind: "retry", error: ERROR, delayMs: 1_000 },
  { kind: "interrupted" },
  { kind: "released" },
];

/** As somebody knows it who was told of it over the network. */
const told = ({ id, jobEpoch, lease }: ClaimedJob): Run => ({ id, jobEpoch, lease });

const said = (run: Run, value: number): Report => ({
  run,
  logs: [{ at: 1, level: "info", message: `at ${value}` }],
  progress: { value, message: null },
});

async function running(
  world: StoreWorld,
  fence: Term,
  fields: Partial<ClaimRequest> = {},
): Promise<ClaimedJob> {
  return world.running({}, { lease: lease("agent:a/1"), fence, ...fields });
}

/** Terms that are not the newest, whatever the epoch says. */
export async function strangers(world: StoreWorld): Promise<Term[]> {
  const old = await world.term();
  const newest = await world.nextTerm();
  return [
    old,
    { ...newest, incarnation: "another" },
    { ...newest, leader: "another" as Term["leader"] },
    { ...newest, epoch: newest.epoch + 1 },
    { ...newest, role: "log_compactor" },
  ];
}

export const fencedWritePromises: Promises = {
  "under any other term nothing is submitted": async (world) => {
    for (const fence of await strangers(world)) {
      const plain = [world.newJob(), world.newJob()];
      const other = [world.newJob({ priority: 3 }), world.newJob({ delayMs: 5, idempotencyKey: "k" })];
      for (const jobs of [plain, plain.slice(1), other]) {
        await assert.rejects(world.store.jobs.submit(jobs, AUTHOR, true, fence), refused);
      }
      for (const { id } of [...plain, ...other]) assert.equal(await world.store.jobs.get(id), null);
    }
  },

  "under any other term nothing is claimed, and no lease is opened or prolonged": async (world) => {
    const held = lease("agent:held/1");
    const run = await world.running({}, { lease: held });
    const waiting = await world.submit();
    const before = await world.job(waiting);
    for (const fence of await strangers(world)) {
      for (const name of [lease("agent:new/1"), held]) {
        const request = world.request({ lease: name, leaseMs: HOUR_MS, fence });
        await assert.rejects(world.store.jobs.claim(request), refused);
        const idle = world.request({ lease: name, leaseMs: HOUR_MS, tasks: new Set(["unknown"]), fence });
        await assert.rejects(world.store.jobs.claim(idle), refused);
      }
    }
    assert.deepEqual(await world.job(waiting), before);
    assert.equal((await world.store.jobs.renew(lease("agent:new/1"), LEASE_MS)).held, false);
    await world.clock.advance(LEASE_MS * 2);
    assert.deepEqual(column(await world.recover(), "id"), [run.id]);
  },

  "under any other term no run ends, however it would": async (world) => {
    const runs: ClaimedJob[] = [];
    for (let at = 0; at < OUTCOMES.length; at++) runs.push(await world.running());
    const before = await Promise.all(runs.map(({ id }) => world.job(id)));
    const settlements = runs.map((run, at) => ({ run: told(run), outcome: OUTCOMES[at]! }));
    for (const fence of await strangers(world)) {
      await assert.rejects(settleRuns(world.store, settlements, fence), refused);
      for (const one of settlements) await assert.rejects(settleRuns(world.store, [one], fence), refused);
    }
    assert.deepEqual(await Promise.all(runs.map(({ id }) => world.job(id))), before);
  },

  "under any other term nothing is reported, also not about a job that is gone": async (world) => {
    const run = await world.running();
    const before = await world.job(run.id);
    const gone = { ...told(run), id: world.newId() };
    for (const fence of await strangers(world)) {
      await assert.rejects(reportRuns(world.store, [said(run, 0.5)], fence), refused);
      await assert.rejects(reportRuns(world.store, [said(gone, 0.5)], fence), refused);
    }
    assert.deepEqual(await world.job(run.id), before);
    assert.deepEqual(await world.logs(run.id), []);
  },

  "under any other term no lease is renewed": async (world) => {
    const run = await world.running();
    for (const fence of await strangers(world)) {
      await assert.rejects(world.store.jobs.renew(run.lease, HOUR_MS, fence), refused);
      await assert.rejects(world.store.jobs.renew(lease("agent:none/1"), HOUR_MS, fence), refused);
    }
    await world.clock.advance(LEASE_MS * 2);
    assert.deepEqual(column(await world.recover(), "id"), [run.id]);
  },

  "under any other term a batch of nothing is refused too": async (world) => {
    const { jobs } = world.store;
    for (const fence of await strangers(world)) {
      await assert.rejects(jobs.submit([], AUTHOR, false, fence), refused);
      await assert.rejects(settleRuns({ jobs }, [], fence), refused);
      await assert.rejects(reportRuns({ jobs }, [], fence), refused);
      await assert.rejects(world.store.agents.seen([], fence), refused);
    }
    const fence = await world.term();
    assert.deepEqual(await jobs.submit([], AUTHOR, false, fence), []);
    assert.deepEqual(
      [await settleRuns({ jobs }, [], fence), await reportRuns({ jobs }, [], fence)],
      [[], []],
    );
  },

  "a term that was granted elsewhere is as good, and the one before it is over": async (world) => {
    const old = await world.term();
    const fence: Term = { ...old, leader: "node-z" as Term["leader"], epoch: old.epoch + 5 };
    await assert.rejects(world.store.jobs.submit([world.newJob()], AUTHOR, false, fence), refused);
    assert.equal(await world.store.terms.admit(fence), true);
    await world.store.jobs.submit([world.newJob()], AUTHOR, false, fence);
    await assert.rejects(world.store.jobs.submit([world.newJob()], AUTHOR, false, old), refused);
  },

  "a grant of another role is nobody's end": async (world) => {
    const fence = await world.term();
    await world.store.terms.grant("log_compactor", { name: NODE, incarnation: "9" });
    const run = await running(world, fence);
    assert.deepEqual(await reportRuns(world.store, [said(run, 0.1)], fence), ["accepted"]);
  },

  "a job shows the epoch of the term that it was submitted and claimed under": async (world) => {
    const first = await world.term();
    const jobs = [world.newJob(), world.newJob({ priority: 1, idempotencyKey: "k" })];
    await world.store.jobs.submit(jobs, AUTHOR, false, first);
    for (const { id } of jobs) {
      const { leaderEpoch, ownerEpoch, owner } = await world.job(id);
      assert.deepEqual([leaderEpoch, ownerEpoch, owner], [first.epoch, AUTHOR.ownerEpoch, NODE]);
    }
    const second = await world.nextTerm();
    for (const run of await world.claim({ lease: lease("agent:a/1"), fence: second })) {
      assert.equal(run.leaderEpoch, second.epoch);
      const { leaderEpoch, ownerEpoch, owner } = await world.job(run.id);
      assert.deepEqual([leaderEpoch, ownerEpoch, owner], [second.epoch, AUTHOR.ownerEpoch, NODE]);
    }
  },

  "a job shows the epoch of the term that its run ended under, however it did": async (world) => {
    for (const together of [true, false]) {
      const first = await world.nextTerm();
      const runs: ClaimedJob[] = [];
      for (let at = 0; at < OUTCOMES.length; at++) runs.push(await running(world, first));
      const second = await world.nextTerm();
      const settlements = runs.map((run, at) => ({ run: told(run), outcome: OUTCOMES[at]! }));
      const batches = together ? [settlements] : settlements.map((one) => [one]);
      for (const batch of batches) {
        const verdicts = await settleRuns(world.store, batch, second);
        assert.deepEqual(new Set(verdicts), new Set(["accepted"]));
      }
      for (const [at, { id }] of runs.entries()) {
        const job = await world.job(id);
        const kind = OUTCOMES[at]!.kind;
        assert.equal(job.leaderEpoch, second.epoch, kind);
        assert.deepEqual([job.owner, job.ownerEpoch], [NODE, AUTHOR.ownerEpoch], kind);
        await world.store.jobs.remove(id);
      }
    }
  },

  "a result without a term leaves the epoch as it was": async (world) => {
    const fence = await world.term();
    const run = await running(world, fence);
    await world.nextTerm();
    await world.finish(told(run), "1");
    assert.equal((await world.job(run.id)).leaderEpoch, fence.epoch);
  },

  "a job shows the epoch of the term that its run last reported under": async (world) => {
    const run = await running(world, await world.term());
    const second = await world.nextTerm();
    await reportRuns(world.store, [said(told(run), 0.5)], second);
    const { leaderEpoch, owner, progress } = await world.job(run.id);
    assert.deepEqual([leaderEpoch, owner, progress], [second.epoch, NODE, 0.5]);
  },

  "a result that is repeated under a later term changes nothing": async (world) => {
    const first = await world.term();
    const run = told(await running(world, first));
    const settlement = { run, outcome: { kind: "completed", result: "1" } } as const;
    assert.deepEqual(await settleRuns(world.store, [settlement], first), ["accepted"]);
    const before = await world.job(run.id);
    const second = await world.nextTerm();
    assert.deepEqual(await settleRuns(world.store, [settlement], second), ["replayed"]);
    assert.deepEqual(await world.job(run.id), before);
  },

  "claims under one new lease at the same time share the jobs, and each is given once": async (world) => {
    const fence = await world.term();
    const ids = await world.submitMany(20);
    const request = world.request({ lease: lease("agent:a/1"), limit: 5, fence });
    const claims = await Promise.all(Array.from({ length: 6 }, () => world.store.jobs.claim(request)));
    const given = claims.flatMap(({ jobs }) => jobs.map(({ id }) => id));
    const rest = await world.claimIds({ lease: lease("agent:a/1"), fence });
    assert.deepEqual([...given, ...rest].sort(), [...ids].sort());
    assert.ok(claims.every(({ held }) => held));
  },

  "a report that came too late with its term is no failure of a result beside it": async (world) => {
    const old = await world.term();
    const run = await world.running();
    const own = await world.running({}, { lease: lease("node-a/2") });
    await world.nextTerm();
    const late = reportRuns(world.store, [said(told(run), 0.5)], old);
    const settled = settleRuns(world.store, [{ run: own, outcome: { kind: "completed", result: "1" } }]);
    await assert.rejects(late, refused);
    assert.deepEqual(await settled, ["accepted"]);
  },

  "writes that race a grant are made before it, or refused": async (world) => {
    const { jobs } = world.store;
    for (let round = 0; round < 5; round++) {
      const fence = await world.nextTerm(String(round));
      const runs: ClaimedJob[] = [];
      for (let at = 0; at < 6; at++) {
        runs.push(await running(world, fence, { lease: lease(`agent:a/${at}`) }));
      }
      const results = runs.map((run) => {
        return settleRuns({ jobs }, [{ run: told(run), outcome: { kind: "completed", result: "1" } }], fence);
      });
      const grant = world.nextTerm(`${round}, later`);
      const outcomes = await Promise.allSettled(results);
      const next = await grant;
      for (const [at, outcome] of outcomes.entries()) {
        const run = runs[at]!;
        if (outcome.status === "rejected") assert.equal(outcome.reason.code, refused.code);
        assert.equal(await world.status(run.id), outcome.status === "fulfilled" ? "completed" : "processing");
        if (outcome.status === "rejected") {
          const again = { run: told(run), outcome: { kind: "completed", result: "1" } } as const;
          assert.deepEqual(await settleRuns({ jobs }, [again], next), ["accepted"]);
        }
      }
    }
  },
};
