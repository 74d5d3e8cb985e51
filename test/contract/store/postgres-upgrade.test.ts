import assert from "node:assert/strict";
import { after, test } from "node:test";
import { Client } from "pg";
import { PostgresChannels } from "../../../src/channels/postgres/channels.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { jobId, type JobId, uuidAt } from "../../../src/core/ids.ts";
import { systemRandom } from "../../../src/platform/random.ts";
import { MIGRATIONS } from "../../../src/store/postgres/schema.ts";
import { openPostgresStore } from "../../../src/store/postgres/store.ts";
import type { ClaimRequest, NewJob } from "../../../src/store/store.ts";
import { PostgresServer } from "../../support/postgres-server.ts";
import { AUTHOR, lease, LEASE_MS, NODE, settleRuns } from "../../support/store-world.ts";

/** The last schema before jobs had tags. */
const BEFORE_TAGS = 9;

const REQUEST: ClaimRequest = {
  author: AUTHOR,
  worker: NODE,
  lease: lease("node-a/1"),
  leaseMs: LEASE_MS,
  limit: 10,
  tasks: new Set(["work"]),
  queues: null,
  exceptQueues: new Set(),
  opens: true,
  suspect: false,
};

function newJob(id: JobId): NewJob {
  const plain = { task: "work", queue: "default", priority: 0, payload: "{}", delayMs: 0, runAt: null };
  return { id, ...plain, maxAttempts: 5, timeoutMs: null, idempotencyKey: null };
}

const server = await PostgresServer.start();
after(() => server.stop());

/** The tables as a version had them that knew no later migration. */
async function makeOld(client: Client, version: number): Promise<void> {
  await client.query("CREATE SCHEMA baton");
  await client.query(
    "CREATE TABLE baton.migration (version int PRIMARY KEY, compatible_from int NOT NULL, ran_at timestamptz NOT NULL DEFAULT now())",
  );
  for (const [at, { up, compatibleFrom }] of MIGRATIONS.slice(0, version).entries()) {
    for (const text of up) await client.query(text);
    await client.query("INSERT INTO baton.migration (version, compatible_from) VALUES ($1, $2)", [
      at + 1,
      compatibleFrom,
    ]);
  }
}

test("a database of an earlier version is brought up to date, with all that is in it", async () => {
  const url = await server.createDatabase();
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    await makeOld(client, BEFORE_TAGS);
    const { rows } = await client.query<{ id: string }>(
      "SELECT baton.submit('work', '{\"n\":1}') AS id FROM generate_series(1, 3)",
    );
    await client.query("INSERT INTO baton.term VALUES ('scheduler', 'node-b', 'b-1', 41)");
    const old = rows.map(({ id }) => id as JobId);

    await using store = await openPostgresStore({ url, clock: systemClock });
    const found = await client.query("SELECT max(version)::int AS version FROM baton.migration");
    assert.deepEqual(found.rows, [{ version: MIGRATIONS.length }]);
    for (const id of old) {
      const job = await store.jobs.get(id);
      assert.deepEqual([job?.status, JSON.parse(job!.payload), job?.tags], ["queued", { n: 1 }, []]);
    }
    assert.equal((await store.terms.grant("scheduler", { name: NODE, incarnation: "1" })).epoch, 42);

    const id = jobId(NODE, systemRandom.timedUuid());
    await store.jobs.submit([{ ...newJob(id), tags: ["red"] }], AUTHOR);
    const tagged = await store.jobs.list({ limit: 10, tag: "red" });
    assert.deepEqual(
      tagged.jobs.map((job) => [job.id, job.tags]),
      [[id, ["red"]]],
    );
    const claimed = await store.jobs.claim(REQUEST);
    assert.deepEqual(new Set(claimed.jobs.map((job) => job.id)), new Set([...old, id]));
    const settlements = claimed.jobs.map((run) => ({
      run,
      outcome: { kind: "completed", result: "1" } as const,
    }));
    assert.deepEqual(await settleRuns(store, settlements), Array(4).fill("accepted"));

    const channels = new PostgresChannels({ url, clock: systemClock, random: systemRandom });
    await channels.start();
    try {
      const handled = Promise.withResolvers<unknown>();
      channels.consume("q", async ([first]) => handled.resolve(first!.body));
      await channels.send("q", [{ key: "a", body: "arrives" }]);
      assert.equal(await handled.promise, "arrives");
    } finally {
      await channels.stop();
    }
  } finally {
    await client.end();
    await server.giveBack(url);
  }
});

/** The last schema in which each row was one job. */
const BEFORE_RANGES = 12;

test("jobs that wait, run or have finished are carried over to rows that may be ranges", async () => {
  const url = await server.createDatabase();
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    await makeOld(client, BEFORE_RANGES);
    const { rows } = await client.query<{ id: string }>(
      "SELECT baton.submit('work', '{\"old\":1}') AS id FROM generate_series(1, 4)",
    );
    const [waiting, running, completed, later] = rows.map(({ id }) => id as JobId);
    const seqOf = (id: JobId) => `(SELECT seq FROM baton.job WHERE id = '${id.slice(-36)}')`;
    await client.query(`
      INSERT INTO baton.lease (name, expires_at) VALUES ('node-a/1', ${Date.now() + LEASE_MS});
      UPDATE baton.live SET running = true, job_epoch = 1, attempts = 1, started_at = run_at,
        lease = (SELECT id FROM baton.lease) WHERE seq = ${seqOf(running!)};
      UPDATE baton.live SET later = true, run_at = run_at + 3600000 WHERE seq = ${seqOf(later!)};
      WITH gone AS (DELETE FROM baton.live WHERE seq = ${seqOf(completed!)} RETURNING *)
      INSERT INTO baton.done (seq, id, kind, finished_at, run_at, started_at, author, job_epoch, attempts, failures,
        interruptions, crashes, logs, status, cancel_requested, result)
      SELECT seq, id, kind, run_at, run_at, run_at, author, 1, 1, 0, 0, 0, 0, 3, false, '7' FROM gone;
      INSERT INTO baton.tally (kind, status, n) SELECT kind, 3, 1 FROM baton.live LIMIT 1`);

    await using store = await openPostgresStore({ url, clock: systemClock });
    const statuses = await Promise.all(
      [waiting, running, completed, later].map(async (id) => (await store.jobs.get(id!))?.status),
    );
    assert.deepEqual(statuses, ["queued", "processing", "completed", "scheduled"]);
    assert.equal(await store.jobs.result(completed!), "7");

    const first = systemRandom.timedUuid();
    const bulk = Array.from({ length: 5 }, (_, at) => newJob(jobId(NODE, uuidAt(first, at))));
    await store.jobs.submit(bulk, AUTHOR);
    const { jobs } = await store.jobs.claim({ ...REQUEST, limit: 3 });
    assert.deepEqual(
      jobs.map(({ id }) => id),
      [waiting, bulk[0]!.id, bulk[1]!.id],
    );
    const run = { id: running!, jobEpoch: 1, lease: lease("node-a/1") };
    const ended = [run, ...jobs].map((each) => ({
      run: each,
      outcome: { kind: "completed", result: "null" } as const,
    }));
    assert.deepEqual(await settleRuns(store, ended), Array(4).fill("accepted"));
    const listed = await store.jobs.list({ limit: 10 });
    assert.deepEqual(
      listed.jobs.map(({ id }) => id),
      [...bulk.map(({ id }) => id).reverse(), later, completed, running, waiting],
    );
    const [queue] = await store.queues.list();
    assert.deepEqual(
      { ...queue!.counts },
      { scheduled: 1, queued: 3, processing: 0, completed: 5, failed: 0, cancelled: 0 },
    );

    // A node of the version before, which may not start any more, or has not stopped yet.
    const { rows: found } = await client.query(
      "SELECT max(compatible_from)::int AS lowest FROM baton.migration",
    );
    assert.deepEqual(found, [{ lowest: BEFORE_RANGES + 1 }]);
    await assert.rejects(client.query("UPDATE baton.live SET running = true"), /"running"/);
  } finally {
    await client.end();
    await server.giveBack(url);
  }
});
