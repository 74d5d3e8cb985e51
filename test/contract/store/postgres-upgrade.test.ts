import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Client } from "pg";
import { PostgresChannels } from "../../../src/channels/postgres/channels.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { jobId, type JobId } from "../../../src/core/ids.ts";
import { systemRandom } from "../../../src/platform/random.ts";
import { MIGRATIONS } from "../../../src/store/postgres/schema.ts";
import { openPostgresStore } from "../../../src/store/postgres/store.ts";
import { PostgresServer } from "../../support/postgres-server.ts";
import { AUTHOR, lease, LEASE_MS, NODE, settleRuns } from "../../support/store-world.ts";

/** The last schema before jobs had tags. */
const BEFORE_TAGS = 9;

let server: PostgresServer;
before(async () => {
  server = await PostgresServer.start();
});
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
    const plain = { task: "work", queue: "default", priority: 0, payload: "{}", delayMs: 0, runAt: null };
    const limits = { maxAttempts: 5, timeoutMs: null, idempotencyKey: null };
    await store.jobs.submit([{ id, ...plain, ...limits, tags: ["red"] }], AUTHOR);
    const tagged = await store.jobs.list({ limit: 10, tag: "red" });
    assert.deepEqual(
      tagged.jobs.map((job) => [job.id, job.tags]),
      [[id, ["red"]]],
    );
    const claimed = await store.jobs.claim({
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
    });
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
