import assert from "node:assert/strict";
import { DEFAULT_BUDGETS } from "../../../src/core/jobs/job.ts";
import { lease, LEASE_MS, type Promises } from "../../support/store-world.ts";
import {
  accept,
  dispatched,
  dispatchRequest,
  jobsOf,
  outstanding,
  ownershipOf,
  wanted,
  unfinished,
} from "./ownership-world.ts";
import { strangers } from "./fenced-writes.ts";
import { column, columns } from "../../support/columns.ts";

const MARK_MS = 5_000;
const TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01 a=b, c=d";

/** Marks: a leader puts them on due jobs, and whoever comes with one runs the job. */
export const dispatchPromises: Promises = {
  "a dispatch marks every due job once, in assignments of the size that was asked for": async (world) => {
    const ids = await world.submitMany(45);
    const first = await dispatched(world, { limit: 44 });
    assert.deepEqual(
      first.map(({ jobs }) => jobs.length),
      [20, 20, 4],
    );
    assert.equal(new Set(first.map(({ id }) => id)).size, 3);
    const second = await dispatched(world);
    assert.deepEqual(column(jobsOf([...first, ...second]), "id"), ids);
    assert.deepEqual(await dispatched(world), []);
    assert.ok(second[0]!.id > Math.max(...first.map(({ id }) => id)));
  },

  "a dispatch tells of a job what a claim tells, as of the run that is to begin": async (world) => {
    const id = await world.submit({
      priority: 3,
      payload: '{"n":1}',
      maxAttempts: 7,
      timeoutMs: 900,
      trace: TRACE,
    });
    await world.settle(await world.again(id), { kind: "interrupted" });
    const [job] = jobsOf(await dispatched(world));
    const { jobs } = await world.store.jobs.claim(world.request());
    const { lease: _, leaderEpoch: __, ...claimed } = jobs[0]!;
    assert.deepEqual({ ...job! }, { ...claimed });
    assert.deepEqual([job!.jobEpoch, job!.attempts, job!.interruptions], [2, 2, 1]);
    assert.equal(job!.trace, TRACE);
  },

  "a mark burns nothing and changes nothing that is told of the job": async (world) => {
    const id = await world.submit();
    const before = await world.job(id);
    await world.clock.advance(10);
    assert.equal((await dispatched(world)).length, 1);
    assert.deepEqual(await world.job(id), before);
    assert.deepEqual(await world.counts(), { queued: 1 });
  },

  "jobs are dispatched by priority, due time and arrival": async (world) => {
    const late = await world.submit({ delayMs: 50 });
    const first = await world.submit();
    const second = await world.submit();
    const urgent = await world.submit({ priority: 5, queue: "other" });
    const idle = await world.submit({ priority: -5 });
    await world.clock.advance(100);
    const assignments = await dispatched(world, { size: 2 });
    assert.deepEqual(
      assignments.map(({ jobs }) => jobs.map(({ id }) => id)),
      [[urgent, first], [second, late], [idle]],
    );
  },

  "a dispatch says when the next job is due, and leaves it until then": async (world) => {
    const id = await world.submit({ delayMs: 700 });
    await world.clock.advance(100);
    const request = dispatchRequest({ limit: 10 });
    const early = await ownershipOf(world).dispatch(request, await world.term());
    assert.deepEqual(early, { assignments: [], nextDueInMs: 600 });
    await world.clock.advance(600);
    const due = await ownershipOf(world).dispatch(request, await world.term());
    assert.deepEqual(column(jobsOf(due.assignments), "id"), [id]);
    assert.equal(due.nextDueInMs, null);
  },

  "paused queues, excepted ones, others than asked for and unknown tasks are not dispatched": async (
    world,
  ) => {
    for (const queue of ["paused", "excepted", "wanted", "unwanted"]) await world.submit({ queue });
    await world.submit({ queue: "wanted", task: "unknown" });
    await world.store.queues.setPaused("paused", true);
    const queues = new Set(["paused", "excepted", "wanted"]);
    const jobs = jobsOf(await dispatched(world, { queues, exceptQueues: new Set(["excepted"]) }));
    assert.deepEqual(columns(jobs, "queue", "task"), [["wanted", "work"]]);
    await world.store.queues.setPaused("paused", false);
    assert.deepEqual(column(jobsOf(await dispatched(world, { queues: new Set(["paused"]) })), "queue"), [
      "paused",
    ]);
  },

  "one suspect at most is dispatched, if any, and in an assignment of its own": async (world) => {
    const suspects = await world.submitMany(2);
    await world.claim();
    await world.crash({ ...DEFAULT_BUDGETS, crashesMax: 2 });
    const plain = await world.submitMany(2);
    assert.deepEqual(
      (await dispatched(world, { limit: 1 })).map(({ jobs }) => jobs.map(({ id }) => id)),
      [[plain[0]]],
    );
    const assignments = await dispatched(world, { suspect: true });
    assert.deepEqual(
      assignments.map(({ jobs }) => jobs.map(({ id }) => id)),
      [[suspects[0]], [plain[1]]],
    );
    assert.deepEqual(column(jobsOf(await dispatched(world, { suspect: true })), "id"), [suspects[1]]);
  },

  "a leader does not dispatch what the one before it has marked": async (world) => {
    const ids = await world.submitMany(30);
    const first = await dispatched(world, { limit: 10 });
    await world.nextTerm("2");
    const second = await dispatched(world);
    assert.deepEqual(column(jobsOf([...first, ...second]), "id"), ids);
    assert.deepEqual((await accept(world, [...second, ...first])).accepted, Array(30).fill(true));
  },

  "for another leader there is no dispatch, and no mark is taken off": async (world) => {
    await world.submitMany(2);
    await dispatched(world, { limit: 1 });
    await world.clock.advance(2 * MARK_MS);
    const ownership = ownershipOf(world);
    for (const fence of await strangers(world)) {
      await assert.rejects(ownership.dispatch(dispatchRequest(), fence), { code: "STALE_EPOCH" });
      await assert.rejects(ownership.undispatch(MARK_MS, fence), { code: "STALE_EPOCH" });
    }
    assert.deepEqual(await outstanding(world), { default: 1 });
  },

  "an accepted job runs as if its worker had claimed it": async (world) => {
    const id = await world.submit();
    await world.clock.advance(100);
    const assignments = await dispatched(world);
    const fields = { worker: "node-b#4", lease: lease("node-b/2") };
    assert.deepEqual(await accept(world, assignments, fields), { held: true, accepted: [true] });
    const job = await world.job(id);
    assert.deepEqual([job.status, job.worker, job.jobEpoch, job.attempts], ["processing", "node-b#4", 1, 1]);
    assert.deepEqual([job.startedAt, job.updatedAt], [world.clock.now(), world.clock.now()]);
    assert.deepEqual(await world.counts(), { processing: 1 });
    assert.deepEqual(await world.claimIds(), []);
    assert.deepEqual(await dispatched(world), []);
    const run = { id, jobEpoch: 1, lease: fields.lease };
    assert.equal(await world.log(run, "it runs"), "accepted");
    await world.finish(run, "7");
    assert.equal(await world.store.jobs.result(id), "7");
  },

  "the same mark twice in one request is accepted once": async (world) => {
    await world.submit();
    const [one] = await dispatched(world);
    assert.deepEqual((await accept(world, [one!, one!])).accepted, [true, false]);
  },

  "a run that comes without the keeper's own number is accepted as well": async (world) => {
    const ids = await world.submitMany(2);
    const request = wanted(await dispatched(world));
    const [first, second] = request.runs.map(({ id, jobEpoch, assignment }) => ({
      id,
      jobEpoch,
      assignment,
    }));
    const unknown = { ...first!, id: world.newId() };
    const runs = [unknown, second!, first!];
    assert.deepEqual((await ownershipOf(world).accept({ ...request, runs })).accepted, [false, true, true]);
    for (const id of ids) assert.equal(await world.status(id), "processing");
  },

  "a mark that is gone is not accepted": async (world) => {
    const [cancelled, claimed, unmarked, anew, removed, good] = await world.submitMany(6);
    const assignments = await dispatched(world, { size: 1 });
    await world.store.jobs.cancel(cancelled!, null);
    assert.deepEqual(await world.claimIds({ limit: 1, lease: lease("node-b/1") }), [claimed]);
    await world.clock.advance(MARK_MS);
    await ownershipOf(world).undispatch(MARK_MS, await world.term());
    const again = await dispatched(world, { limit: 4 });
    await world.clock.advance(MARK_MS);
    await ownershipOf(world).undispatch(MARK_MS, await world.term());
    const last = await dispatched(world, { size: 1 });
    await world.store.jobs.remove(removed!);
    assert.deepEqual((await accept(world, assignments)).accepted, Array(6).fill(false));
    assert.deepEqual((await accept(world, again)).accepted, Array(4).fill(false));
    assert.deepEqual((await accept(world, last)).accepted, [true, true, false, true]);
    for (const id of [unmarked, anew, good]) assert.equal(await world.status(id!), "processing");
  },

  "a job that was retried by hand is not accepted by the mark of before": async (world) => {
    const id = await world.submit();
    const assignments = await dispatched(world);
    await world.store.jobs.cancel(id, null);
    await world.store.jobs.retry(id);
    assert.deepEqual((await accept(world, assignments)).accepted, [false]);
    const again = await dispatched(world);
    assert.deepEqual((await accept(world, assignments)).accepted, [false]);
    assert.deepEqual((await accept(world, again)).accepted, [true]);
  },

  "a worker that takes by itself does not mind marks, and whoever comes with them later loses": async (
    world,
  ) => {
    const ids = await world.submitMany(3);
    const assignments = await dispatched(world);
    const claimed = await world.claim({ lease: lease("node-b/1") });
    assert.deepEqual(column(claimed, "id"), ids);
    assert.deepEqual((await accept(world, assignments)).accepted, [false, false, false]);
    assert.deepEqual(await unfinished(world, [assignments[0]!.id]), [0]);
    for (const run of claimed) await world.settle(run, { kind: "released" });
    assert.deepEqual((await accept(world, assignments)).accepted, [false, false, false]);
    assert.deepEqual(column(jobsOf(await dispatched(world)), "id"), ids);
  },

  "nothing is accepted under a lease that was lost, and one that was ended is not revived": async (world) => {
    await world.submitMany(2);
    const [first, second] = await dispatched(world, { size: 1 });
    assert.equal((await accept(world, [first!])).held, true);
    await world.clock.advance(LEASE_MS + 1);
    assert.deepEqual(await accept(world, [second!]), { held: false, accepted: [false] });
    await world.recover();
    assert.deepEqual(await accept(world, [second!], { opens: false }), { held: false, accepted: [false] });
    assert.deepEqual(await accept(world, [second!]), { held: true, accepted: [true] });
  },

  "an accept prolongs the lease": async (world) => {
    await world.submitMany(2);
    const [first, second] = await dispatched(world, { size: 1 });
    await accept(world, [first!]);
    await world.clock.advance(LEASE_MS - 1_000);
    await accept(world, [second!], { opens: false });
    await world.clock.advance(LEASE_MS - 1_000);
    assert.deepEqual(await world.recover(), []);
  },

  "the recovery of a dead worker takes its jobs out of their assignment": async (world) => {
    const ids = await world.submitMany(2);
    const assignments = await dispatched(world);
    await accept(world, assignments);
    assert.deepEqual(await unfinished(world, [assignments[0]!.id]), [2]);
    assert.equal((await world.recover({ by: "incarnations", incarnations: ["1"] })).length, 2);
    assert.deepEqual(await unfinished(world, [assignments[0]!.id]), [0]);
    assert.deepEqual((await accept(world, assignments)).accepted, [false, false]);
    const again = await dispatched(world);
    assert.deepEqual(
      columns(jobsOf(again), "id", "jobEpoch", "attempts", "crashes"),
      ids.map((id) => [id, 3, 2, 1]),
    );
    assert.deepEqual((await accept(world, again, { lease: lease("node-b/2") })).accepted, [true, true]);
  },

  "marks that nobody accepts in time are taken off, and only those": async (world) => {
    const ids = await world.submitMany(2);
    await world.submitMany(2, { queue: "other" });
    const old = await dispatched(world, { size: 1 });
    await accept(world, [old[1]!]);
    await world.clock.advance(MARK_MS - 1);
    await world.submitMany(3);
    const young = await dispatched(world);
    const ownership = ownershipOf(world);
    const term = await world.term();
    const undispatch = async () => {
      const { freed, outstanding } = await ownership.undispatch(MARK_MS, term);
      return [Object.fromEntries(freed), Object.fromEntries(outstanding)];
    };
    assert.deepEqual(await undispatch(), [{}, { default: 4, other: 2 }]);
    await world.clock.advance(1);
    assert.deepEqual(await undispatch(), [{ default: 1, other: 2 }, { default: 3 }]);
    assert.deepEqual(await undispatch(), [{}, { default: 3 }]);
    assert.equal(await world.status(ids[1]!), "processing");
    assert.equal(jobsOf(await dispatched(world)).length, 3);
    assert.deepEqual((await accept(world, young)).accepted, [true, true, true]);
  },

  "thousands of jobs are dispatched and accepted once each, whoever competes for them": async (world) => {
    const ids = new Set<string>();
    for (let batch = 0; batch < 5; batch++) for (const id of await world.submitMany(1_000)) ids.add(id);
    const started = new Map<string, number>();
    const sent: Promise<void>[] = [];
    for (let rounds = 0; rounds < 20; rounds++) {
      const assignments = await dispatched(world, { limit: 700, size: 50 });
      if (assignments.length === 0) break;
      // Each message reaches everybody, in another order.
      for (const [at, name] of ["node-a/1", "node-b/1", "node-c/1"].entries()) {
        const mine = assignments.map((_, place) => assignments[(place + at * 5) % assignments.length]!);
        const request = wanted(mine, { lease: lease(name) });
        const note = async (): Promise<void> => {
          const { accepted } = await ownershipOf(world).accept(request);
          for (const [place, { id }] of request.runs.entries())
            if (accepted[place]) started.set(id, (started.get(id) ?? 0) + 1);
        };
        sent.push(note());
      }
    }
    await Promise.all(sent);
    assert.deepEqual(new Set(started.keys()), ids);
    assert.deepEqual(new Set(started.values()), new Set([1]));
    assert.deepEqual(await world.counts(), { processing: 5_000 });
    assert.deepEqual(await outstanding(world), {});
  },
};
