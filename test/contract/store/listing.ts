import assert from "node:assert/strict";
import type { JobId } from "../../../src/core/ids.ts";
import { hasCode } from "../../../src/core/errors.ts";
import type { JobQuery } from "../../../src/store/store.ts";
import {
  AUTHOR,
  ERROR,
  HOUR_MS,
  lease,
  type Promises,
  STOPPED_ERROR,
  type StoreWorld,
} from "../../support/store-world.ts";
import { column, plain } from "../../support/columns.ts";

/** All pages of a query, and what to do between two of them. */
async function walk(world: StoreWorld, query: JobQuery, between?: () => Promise<unknown>): Promise<JobId[]> {
  const seen: JobId[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < 100; page++) {
    const answer = await world.store.jobs.list({ ...query, cursor });
    assert.ok(answer.jobs.length <= query.limit, "a page has more jobs than were asked for");
    seen.push(...answer.jobs.map((job) => job.id));
    if (answer.cursor === null) return seen;
    cursor = answer.cursor;
    await between?.();
  }
  return assert.fail("a list of a few jobs does not end after 100 pages");
}

export const listingPromises: Promises = {
  "jobs are listed newest first, whatever their state": async (world) => {
    const done = await world.running();
    await world.finish(done);
    await world.clock.advance(10);
    const scheduled = await world.submit({ delayMs: HOUR_MS, priority: 9 });
    const overdue = await world.submit({ runAt: 1 });
    const batch = await world.submitMany(2);
    const page = await world.store.jobs.list({ limit: 50 });
    assert.deepEqual(column(page.jobs, "id"), [batch[1], batch[0], overdue, scheduled, done.id]);
    assert.equal(page.cursor, null);
    assert.deepEqual(page.jobs[0], await world.job(batch[1]!));
    assert.deepEqual(page.jobs[4], await world.job(done.id));
  },

  "pages join without gaps or repeats": async (world) => {
    const ids = await world.submitMany(7);
    for (const limit of [1, 2, 3, 7, 50]) {
      assert.deepEqual(await walk(world, { limit }), [...ids].reverse(), `with pages of ${limit}`);
    }
  },

  "a list goes on where it was while jobs arrive, run and leave": async (world) => {
    const ids = await world.submitMany(9);
    const seen = await walk(world, { limit: 2 }, async () => {
      await world.submit();
      await world.claim({ limit: 1 });
      await world.clock.advance(1);
    });
    assert.deepEqual(seen, [...ids].reverse());

    const first = await world.store.jobs.list({ limit: 3 });
    const last = first.jobs.at(-1)!;
    await world.store.jobs.remove(last.id);
    const all = (await world.store.jobs.list({ limit: 100 })).jobs.map((job) => job.id);
    const rest = await world.store.jobs.list({ limit: 100, cursor: first.cursor! });
    assert.deepEqual(column(rest.jobs, "id"), all.slice(2));
  },

  "a list can be narrowed by status": async (world) => {
    const completed = await world.running();
    await world.finish(completed);
    const failed = await world.running();
    await world.fail(failed);
    const cancelled = await world.running();
    await world.settle(cancelled, { kind: "cancelled", error: STOPPED_ERROR });
    const processing = await world.running();
    const scheduled = await world.submit({ delayMs: HOUR_MS });
    const queued = await world.submitMany(3);
    const unknown = await world.submit({ task: "unheard-of" });
    const ids = {
      completed: [completed.id],
      failed: [failed.id],
      cancelled: [cancelled.id],
      processing: [processing.id],
    };
    for (const [status, expected] of Object.entries({
      ...ids,
      scheduled: [scheduled],
      queued: [unknown, ...queued.reverse()],
    })) {
      assert.deepEqual(await walk(world, { limit: 2, status: status as keyof typeof ids }), expected, status);
    }
  },

  "a list can be narrowed by queue, task and time, also together": async (world) => {
    const old = await world.submit({ queue: "a" });
    await world.clock.advance(1_000);
    const since = world.clock.now();
    const ax = await world.submit({ queue: "a", task: "x" });
    const bx = await world.submit({ queue: "b", task: "x" });
    const aw = await world.submit({ queue: "a" });
    assert.deepEqual(await walk(world, { limit: 2, queue: "a" }), [aw, ax, old]);
    assert.deepEqual(await walk(world, { limit: 2, task: "x" }), [bx, ax]);
    assert.deepEqual(await walk(world, { limit: 2, since }), [aw, bx, ax]);
    assert.deepEqual(await walk(world, { limit: 2, since: since + 1 }), []);
    assert.deepEqual(await walk(world, { limit: 1, since, queue: "a", task: "work", status: "queued" }), [
      aw,
    ]);
    assert.deepEqual(await walk(world, { limit: 1, queue: "nowhere" }), []);
  },

  "a list can end at an instant, and be narrowed by what went wrong": async (world) => {
    const old = await world.submit({ queue: "a" });
    await world.clock.advance(1_000);
    const between = world.clock.now();
    const young = await world.submit({ queue: "b" });
    assert.deepEqual(await walk(world, { limit: 2, until: between }), [old]);
    assert.deepEqual(await walk(world, { limit: 1, until: between + 1 }), [young, old]);
    assert.deepEqual(await walk(world, { limit: 1, since: between, until: between + 1 }), [young]);
    assert.deepEqual(await walk(world, { limit: 1, until: between, queue: "b" }), []);
    const runs = await world.claim();
    const codes = ["BAD_PAYLOAD", "TIMEOUT"];
    for (const [at, run] of runs.entries()) {
      const error = { code: codes[at]!, message: "it broke" };
      await world.settle(run, { kind: "failed", error, spends: "failure" });
    }
    assert.deepEqual(await walk(world, { limit: 1, errorCode: "TIMEOUT" }), [runs[1]!.id]);
    assert.deepEqual(await walk(world, { limit: 1, status: "failed", errorCode: "BAD_PAYLOAD" }), [
      runs[0]!.id,
    ]);
    assert.deepEqual(await walk(world, { limit: 1, errorCode: "nothing like it" }), []);
  },

  "tags are kept in their order, and jobs are found by each of them, page by page": async (world) => {
    const odd = ['a "quoted" \\\\ one', "{braces}", "ü, comma"];
    const both = await world.submit({ tags: ["red", ...odd] });
    const reds = await world.submitMany(4, { tags: ["red"], queue: "a" });
    await world.submitMany(3);
    const later = await world.submit({ tags: ["red", "blue"], delayMs: HOUR_MS });
    assert.deepEqual((await world.job(both)).tags, ["red", ...odd]);
    assert.deepEqual((await world.job(await world.submit())).tags, []);
    const newest = [later, ...reds.toReversed(), both];
    assert.deepEqual(await walk(world, { limit: 2, tag: "red" }), newest);
    assert.deepEqual(await walk(world, { limit: 9, tag: "red", status: "scheduled" }), [later]);
    assert.deepEqual(await walk(world, { limit: 1, tag: "red", queue: "a" }), reds.toReversed());
    for (const tag of odd) assert.deepEqual(await walk(world, { limit: 9, tag }), [both]);
    assert.deepEqual(await walk(world, { limit: 9, tag: "re" }), []);
    const [run] = await world.claim({ limit: 1 });
    assert.equal(run!.id, both);
    await world.fail(run!);
    const failed: JobQuery = { limit: 9, tag: "red", status: "failed", errorCode: ERROR.code };
    assert.deepEqual(await walk(world, failed), [both]);
    assert.deepEqual((await world.store.jobs.list(failed, true)).jobs.length, 1);
    await world.store.jobs.remove(both);
    assert.deepEqual(await walk(world, { limit: 9, tag: odd[1]! }), []);
    assert.deepEqual(await walk(world, { limit: 9, tag: "red" }), newest.slice(0, -1));
  },

  "a brief list has the same jobs in the same pages": async (world) => {
    const failed = await world.running({ queue: "a" });
    await world.fail(failed);
    const ids = await world.submitMany(5);
    await world.submit({ delayMs: HOUR_MS });
    const queries: JobQuery[] = [{ limit: 3 }, { limit: 2, status: "queued" }, { limit: 9, queue: "a" }];
    for (const query of queries) {
      const [whole, brief] = [await world.store.jobs.list(query), await world.store.jobs.list(query, true)];
      assert.equal(brief.cursor, whole.cursor);
      assert.deepEqual(
        plain(brief.jobs),
        whole.jobs.map(({ id, task, queue, status, createdAt, finishedAt, error }) => {
          return { id, task, queue, status, createdAt, finishedAt, error };
        }),
      );
    }
    const { jobs } = await world.store.jobs.list({ limit: 9, queue: "a" }, true);
    assert.deepEqual([jobs[0]!.id, jobs[0]!.error, ids.length], [failed.id, ERROR, 5]);
  },

  "those that run are found among many that wait, whatever their line": async (world) => {
    const first = await world.submitMany(2, { queue: "a" });
    const low = await world.submit({ queue: "b", priority: -5 });
    await world.claim();
    await world.submitMany(30, { queue: "a" });
    await world.submitMany(30, { queue: "b", priority: 9 });
    const later = await world.submit({ queue: "c", delayMs: 10 });
    await world.clock.advance(10);
    await world.claim({ queues: new Set(["c"]) });
    assert.deepEqual(await walk(world, { limit: 2, status: "processing" }), [later, low, ...first.reverse()]);
    assert.deepEqual(await walk(world, { limit: 9, status: "processing", queue: "b" }), [low]);
    assert.deepEqual(await walk(world, { limit: 9, status: "scheduled" }), []);
  },

  "how long jobs waited and ran is known of those that ended lately": async (world) => {
    const { jobs } = world.store;
    await world.submitMany(2);
    await world.clock.advance(300);
    const [first, second] = await world.claim();
    await world.clock.advance(40);
    await world.finish(first!);
    await world.submit();
    const cancelled = await world.submit();
    await jobs.cancel(cancelled, null);
    await world.clock.advance(1_000);
    await world.fail(second!);
    const plain = async (limit: number, withinMs: number): Promise<unknown> =>
      (await jobs.timings(limit, withinMs)).map(({ waitMs, runMs, failed }) => [waitMs, runMs, failed]);
    assert.deepEqual(await plain(100, HOUR_MS), [
      [300, 1_040, true],
      [300, 40, false],
    ]);
    assert.deepEqual(await plain(100, 500), [[300, 1_040, true]]);
    assert.deepEqual(await plain(2, HOUR_MS), [[300, 1_040, true]], "one of the two newest never ran");
  },

  "a cursor that this store did not give is refused by name": async (world) => {
    await world.submitMany(3);
    for (const cursor of ["no cursor", "-1", "{}"]) {
      await assert.rejects(
        async () => world.store.jobs.list({ limit: 1, cursor }),
        (error) => hasCode(error, "BAD_REQUEST") && error.details.field === "cursor",
        `cursor ${JSON.stringify(cursor)}`,
      );
    }
  },

  "what is as old as it may become is purged, and what is a millisecond younger is not": async (world) => {
    await world.finish(await world.running());
    await world.store.schedules.put(world.definition(), 1);
    const skipped = { at: 1, do: "skip", reason: "missed", job: null } as const;
    const firing = { schedule: "nightly", nextAt: 2, expectedNextAt: 1, overlap: "allow" } as const;
    const term = await world.term();
    await world.store.schedules.fire({ ...firing, occurrences: [skipped] }, AUTHOR, term);
    const kept = async (): Promise<number[]> => [
      await world.purgeJobs(100, HOUR_MS),
      (await world.store.schedules.history("nightly", 10)).length,
    ];
    await world.clock.advance(HOUR_MS - 1);
    assert.deepEqual(await kept(), [0, 1]);
    await world.clock.advance(1);
    assert.deepEqual(await kept(), [1, 0]);
  },

  "finished jobs are purged when their status has been kept long enough": async (world) => {
    const completed = await world.running({ idempotencyKey: "kept" });
    await world.log(completed, "a line");
    await world.finish(completed);
    const failed = await world.running();
    await world.fail(failed);
    const cancelled = await world.submit();
    await world.store.jobs.cancel(cancelled, null);
    const running = await world.running();
    const queued = await world.submit();
    const scheduled = await world.submit({ delayMs: 9 * HOUR_MS });
    const retention = { completedMs: HOUR_MS, failedMs: 3 * HOUR_MS, cancelledMs: 2 * HOUR_MS };
    const purge = async (): Promise<number> =>
      world.store.purge({ of: "jobs", retention, limit: 100 }, await world.term());

    await world.clock.advance(HOUR_MS - 1);
    assert.equal(await purge(), 0);
    const young = await world.running({ queue: "y" }, { queues: new Set(["y"]), lease: lease("node-a/2") });
    await world.finish(young);
    await world.clock.advance(2);
    assert.equal(await purge(), 1);
    assert.equal(await world.store.jobs.get(completed.id), null);
    assert.deepEqual(await world.logs(completed.id), []);
    assert.equal(await world.store.jobs.result(completed.id), null);
    assert.equal(await world.status(young.id), "completed");
    assert.notEqual(await world.submit({ idempotencyKey: "kept", queue: "y" }), completed.id);

    await world.clock.advance(HOUR_MS);
    assert.equal(await purge(), 2);
    assert.equal(await world.store.jobs.get(cancelled), null);
    assert.equal(await world.status(failed.id), "failed");
    await world.clock.advance(HOUR_MS);
    assert.equal(await purge(), 1);
    assert.equal(await world.store.jobs.get(failed.id), null);
    assert.equal(await world.status(running.id), "processing");
    assert.equal(await world.status(queued), "queued");
    assert.equal(await world.status(scheduled), "scheduled");
    assert.deepEqual(await world.counts(), { processing: 1, queued: 1, scheduled: 1 });
  },

  "a job that was retried by hand is not purged for its earlier end": async (world) => {
    const run = await world.running();
    await world.fail(run);
    await world.clock.advance(HOUR_MS);
    await world.store.jobs.retry(run.id);
    assert.equal(await world.purgeJobs(), 0);
    const again = await world.again(run.id);
    await world.fail(again);
    assert.equal(await world.purgeJobs(), 0);
    assert.equal(await world.status(run.id), "failed");
  },

  "a purge removes no more than its limit at a time": async (world) => {
    await world.submitMany(7);
    for (const run of await world.claim()) await world.finish(run);
    await world.clock.advance(HOUR_MS);
    const removed: number[] = [];
    for (let i = 0; i < 4; i++) removed.push(await world.purgeJobs(3));
    assert.deepEqual(removed, [3, 3, 1, 0]);
    assert.deepEqual(await world.counts(), {});
  },
};
