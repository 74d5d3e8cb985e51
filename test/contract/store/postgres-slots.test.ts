/** Slots: jobs that are inserted already running, under the lease of a worker that has room. */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Client } from "pg";
import { DEFAULT_BUDGETS } from "../../../src/core/jobs/job.ts";
import { topics } from "../../../src/channels/channel-names.ts";
import { RANGE_MAX } from "../../../src/store/postgres/jobs/ranges.ts";
import type { PostgresStore } from "../../../src/store/postgres/store.ts";
import type { ClaimedJob, NewJob, Run, Slot, SlotRequest, Submitted } from "../../../src/store/store.ts";
import { claimRequest, newJob } from "../../support/job-builders.ts";
import { AUTHOR, ERROR, lease, LEASE_MS, NODE, settleRuns } from "../../support/store-world.ts";
import { eventually } from "../../support/wait.ts";
import { waiting, withSession, withStores } from "./postgres-world.ts";

const LEASE = lease("node-w/life/0");

function slotRequest(fields: Partial<SlotRequest> = {}): SlotRequest {
  const { author, worker, tasks, queues, exceptQueues } = claimRequest({ author: AUTHOR });
  return {
    author,
    worker,
    tasks,
    queues,
    exceptQueues,
    lease: LEASE,
    leaseMs: LEASE_MS,
    opens: true,
    channel: "secret",
    ...fields,
  };
}

const open = (
  store: PostgresStore,
  fields: Partial<SlotRequest> = {},
  known: readonly Run[] = [],
): Promise<Slot> => store.jobs.slots!.open(slotRequest(fields), known);

async function submit(store: PostgresStore, fields: Partial<NewJob> = {}): Promise<Submitted> {
  return (await store.jobs.submit([newJob(fields)], AUTHOR))[0]!;
}

/** A job that was given to the slot of the same store. */
async function given(store: PostgresStore, fields: Partial<NewJob> = {}): Promise<ClaimedJob> {
  const { given: run } = await submit(store, fields);
  assert.ok(run, "the job waits, or was given to another store");
  return run;
}

/** A store with a slot that has just been opened, and others beside it. */
function withSlot(
  proof: (store: PostgresStore, others: readonly PostgresStore[], url: string) => Promise<void>,
  stores = 2,
): () => Promise<void> {
  return () =>
    withStores(stores, async ([store, ...others], url) => {
      await submit(store!, { task: "unknown" });
      await settleRuns(store!, [await claimed(store!)]);
      assert.deepEqual(await open(store!), { opened: true, held: true, jobs: [] });
      await proof(store!, others, url);
    });
}

/** One job of the task `work`, so that its kind is known. */
async function claimed(store: PostgresStore) {
  await submit(store);
  const { jobs } = await store.jobs.claim(claimRequest({ lease: lease("node-x/1/0") }));
  return { run: jobs[0]!, outcome: { kind: "completed", result: "null" } } as const;
}

/** The worker has died. */
async function recover(store: PostgresStore) {
  const term = await store.terms.grant("scheduler", { name: NODE, incarnation: "1" });
  return store.jobs.recover({ by: "incarnations", incarnations: ["life"] }, DEFAULT_BUDGETS, term);
}

describe("a slot", () => {
  test(
    "gets a job that is submitted alone, as its first run, which is settled like any other",
    withSlot(async (store) => {
      const run = await given(store, { payload: '{"a":1}', maxAttempts: 7, trace: "t-1" });
      const job = (await store.jobs.get(run.id))!;
      assert.deepEqual(
        [job.status, job.jobEpoch, job.attempts, job.worker, job.startedAt],
        ["processing", 1, 1, "node-a", job.createdAt],
      );
      assert.deepEqual((await open(store)).jobs, [run]);
      const done = { run, outcome: { kind: "completed", result: '"r"' } } as const;
      assert.deepEqual(await settleRuns(store, [done]), ["accepted"]);
      assert.deepEqual(await settleRuns(store, [done]), ["replayed"]);
      assert.equal(await store.jobs.result(run.id), '"r"');
    }),
  );

  test(
    "gets jobs from other stores, with a hint on the channel of its worker that has all of a small job",
    withSlot(async (store, [other], url) =>
      withSession(url, async (session) => {
        const hints = await listening(session);
        const small = await submit(other!, { payload: '{"text":"ä\\u0000\\n"}' });
        assert.equal(small.given, null);
        const large = await submit(other!, { payload: JSON.stringify("x".repeat(20_000)) });
        const [first, second] = await eventually("hints", () => hints.length === 2 && hints);
        const { jobs } = await open(store);
        assert.deepEqual(
          first,
          jobs.find(({ id }) => id === small.id),
        );
        const job = jobs.find(({ id }) => id === large.id)!;
        const { ref, lease: under, id } = second as Partial<ClaimedJob>;
        assert.deepEqual({ ref, under, id }, { ref: job.ref, under: LEASE, id: undefined });
        assert.deepEqual(await store.jobs.slots!.read(LEASE, [ref]), [job]);
        const done = { run: first as ClaimedJob, outcome: { kind: "completed", result: "null" } } as const;
        assert.deepEqual(await settleRuns(store, [done]), ["accepted"]);
        assert.deepEqual(await store.jobs.slots!.read(LEASE, [(first as ClaimedJob).ref]), []);
      }),
    ),
  );

  test(
    "shows jobs whose hints were lost, and not those that are known",
    withSlot(async (store, [other]) => {
      const first = await given(store);
      const second = await submit(other!);
      const { jobs } = await open(store, {}, [first]);
      assert.deepEqual(
        jobs.map(({ id }) => id),
        [second.id],
      );
      assert.deepEqual(await open(store, {}, [first, ...jobs]), { opened: true, held: true, jobs: [] });
      await settleRuns(store, [{ run: first, outcome: { kind: "retry", error: ERROR, delayMs: 0 } }]);
      assert.deepEqual((await open(store, {}, jobs)).jobs, [], "a job that has left it");
    }),
  );

  test(
    "gets no job that something waits in front of, in any line of its worker",
    withSlot(async (store, [other]) => {
      const two = [newJob({ queue: "second" }), newJob({ queue: "second" })];
      await other!.jobs.submit(two, AUTHOR);
      const claim = claimRequest({ lease: LEASE, opens: false });
      assert.equal((await store.jobs.claim(claim)).jobs.length, 2);
      await open(store);
      assert.ok((await submit(store)).given, "its line is empty now");
      await other!.jobs.submit([newJob({ queue: "second" }), newJob({ queue: "second" })], AUTHOR);
      assert.equal((await submit(store)).given, undefined);
      assert.equal((await store.jobs.claim(claim)).jobs.length, 3);
      assert.ok((await submit(store)).given, "nothing waits any more");
      await submit(store, { delayMs: 1, queue: "second" });
      await eventually("the delay to be over", async () => (await submit(store)).given === undefined);
    }),
  );

  test(
    "gets plain jobs only",
    withSlot(async (store) => {
      const fields: Partial<NewJob>[] = [
        { delayMs: 60_000 },
        { idempotencyKey: "k" },
        { tags: ["t"] },
        { task: "unknown" },
        { queue: "never-seen" },
      ];
      for (const each of fields)
        assert.equal((await submit(store, each)).given, undefined, JSON.stringify(each));
      await store.jobs.claim(claimRequest({ lease: LEASE, opens: false }));
      const both = await store.jobs.submit([newJob(), newJob()], AUTHOR);
      assert.deepEqual(
        both.map((answer) => answer.given),
        [undefined, undefined],
      );
    }),
  );

  test(
    "gets nothing while a queue is paused",
    withSlot(async (store) => {
      await store.queues.setPaused("default", true);
      const waits = await submit(store);
      assert.equal(waits.given, undefined);
      assert.deepEqual((await store.jobs.claim(claimRequest({ lease: LEASE, opens: false }))).jobs, []);
      await store.queues.setPaused("default", false);
      assert.equal(
        (await store.jobs.claim(claimRequest({ lease: LEASE, opens: false }))).jobs[0]!.id,
        waits.id,
      );
      assert.ok((await submit(store)).given);
    }),
  );

  test(
    "gets nothing once it is closed, and its closing finds what was put there",
    withSlot(async (store, [other]) => {
      const known = await given(store);
      const unknown = await submit(other!);
      const jobs = await store.jobs.slots!.close(LEASE, [known]);
      assert.deepEqual(
        jobs.map(({ id }) => id),
        [unknown.id],
      );
      assert.equal((await submit(other!)).given, undefined);
      const released = jobs.map((run) => ({ run, outcome: { kind: "released" } }) as const);
      assert.deepEqual(await settleRuns(store, released), ["accepted"]);
      const job = (await store.jobs.get(unknown.id))!;
      assert.deepEqual([job.status, job.attempts, job.interruptions, job.crashes], ["queued", 0, 0, 0]);
    }),
  );

  test("is not closed before submits that use it have ended, nor recovered", async () => {
    const ends = [
      (store: PostgresStore) => store.jobs.slots!.close(LEASE, []),
      (store: PostgresStore) => recover(store),
    ];
    for (const end of ends)
      await withSlot(async (store, [other], url) =>
        withSession(url, async (session) => {
          // The submit waits for this row, with the slot in its hands.
          await session.query("BEGIN");
          await session.query(`INSERT INTO baton.live (seq, id, run_at, updated_at, kind, author, priority, later)
              SELECT last_value + ${RANGE_MAX}, gen_random_uuid(), 0, 0, 0, 0, 0, true FROM baton.job_seq`);
          const submitted = submit(other!);
          await waiting(url, 1);
          const ended = end(store);
          await waiting(url, 2);
          await session.query("ROLLBACK");
          const { id, given: run } = await submitted;
          assert.equal(run, null);
          assert.deepEqual(
            (await ended).map((job) => job.id),
            [id],
          );
        }),
      )();
  });

  test(
    "is shared by submits that meet, and each job runs once",
    withSlot(async (store, others) => {
      const stores = [store, ...others];
      const answers = await Promise.all(Array.from({ length: 60 }, (_, at) => submit(stores[at % 3]!)));
      const own = answers.flatMap((answer) => answer.given ?? []);
      const { jobs } = await open(store, {}, own);
      const { jobs: waited } = await store.jobs.claim(claimRequest({ lease: LEASE, opens: false }));
      const all = [...own, ...jobs, ...waited];
      assert.deepEqual(all.map(({ id }) => id).toSorted(), answers.map(({ id }) => id).toSorted());
      const done = all.map((run) => ({ run, outcome: { kind: "completed", result: "null" } }) as const);
      assert.deepEqual(new Set(await settleRuns(store, done)), new Set(["accepted"]));
    }, 3),
  );

  test(
    "gets a job once, however often it is submitted",
    withSlot(async (store, [other]) => {
      const job = newJob();
      const [first] = await store.jobs.submit([job], AUTHOR);
      assert.ok(first!.given);
      const [second] = await other!.jobs.submit([job], AUTHOR);
      assert.deepEqual([second!.existed, second!.status, second!.given], [true, "processing", undefined]);
      assert.deepEqual((await open(store, {}, [first!.given])).jobs, []);
    }),
  );

  test(
    "is of no use when half of its lease is over, and gone with it",
    withSlot(
      async (store, [other, another], url) =>
        withSession(url, async (session) => {
          const run = await given(store);
          await session.query("UPDATE baton.lease SET expires_at = expires_at - $1::bigint WHERE name = $2", [
            LEASE_MS / 2 + 1_000,
            LEASE,
          ]);
          assert.equal((await submit(other!)).given, undefined);
          await store.jobs.claim(claimRequest({ lease: lease("node-x/1/0") }));
          await store.jobs.renew(LEASE, LEASE_MS);
          assert.equal((await submit(another!)).given, null);
          const recovered = await recover(store);
          assert.equal(recovered.length, 2);
          const { status, crashes, attempts, jobEpoch } = (await store.jobs.get(run.id))!;
          assert.deepEqual(
            { status, crashes, attempts, jobEpoch },
            { status: "queued", crashes: 1, attempts: 1, jobEpoch: 2 },
          );
          assert.equal((await session.query("SELECT FROM baton.slot")).rowCount, 0);
          assert.deepEqual(
            await settleRuns(store, [{ run, outcome: { kind: "completed", result: "null" } }]),
            ["stale"],
          );
          assert.deepEqual(await open(store, { opens: false }), { opened: false, held: false, jobs: [] });
        }),
      3,
    ),
  );

  test(
    "has its jobs cancelled as those of a claim",
    withSlot(async (store) => {
      const run = await given(store);
      assert.deepEqual(await store.jobs.cancel(run.id, "why not"), { outcome: "requested" });
      const { cancelled } = await store.jobs.renew(LEASE, LEASE_MS);
      assert.deepEqual(cancelled, [{ id: run.id, jobEpoch: 1, reason: "why not" }]);
    }),
  );

  test(
    "of a second worker takes what the first one no longer does",
    withSlot(async (store, [other]) => {
      const second = lease("node-v/life/0");
      await other!.jobs.claim(claimRequest({ lease: second })); // knows the kinds from then on
      await open(other!, { lease: second });
      assert.equal((await given(store)).lease, LEASE, "that of the same store comes first");
      assert.equal((await given(other!)).lease, second);
      await store.jobs.slots!.close(LEASE, []);
      assert.equal((await submit(store)).given, null);
      assert.equal((await open(other!, { lease: second })).jobs.length, 2);
    }),
  );

  test(
    "writes nothing when it is open already",
    withSlot(async (store, _, url) =>
      withSession(url, async (session) => {
        const versions =
          "SELECT (SELECT xmin::text FROM baton.slot) AS slot, (SELECT xmin::text || xmax FROM baton.lease WHERE name LIKE 'node-w%') AS lease";
        const before = (await session.query(versions)).rows;
        await open(store);
        assert.deepEqual((await session.query(versions)).rows, before);
        await given(store);
        assert.deepEqual((await session.query(versions)).rows, before, "nor with a job");
        await open(store, { author: { ...AUTHOR, leaderEpoch: 702 } });
        assert.equal((await given(store)).leaderEpoch, 702);
      }),
    ),
  );
});

/** The bodies of hints about given jobs, as they come. */
async function listening(session: Client): Promise<unknown[]> {
  const bodies: unknown[] = [];
  session.on("notification", ({ payload }) => {
    const [[topic, , body]] = JSON.parse(payload!.replace(/^sql:0:/, "")) as [[string, string, unknown]];
    if (topic === topics.jobGiven("life")) bodies.push(body);
  });
  await session.query('LISTEN "secret"');
  return bodies;
}
