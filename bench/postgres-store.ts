/**
 * The PostgreSQL store beside the bare statements that such a store cannot do without, on one server with fsync on, in
 * interleaved rounds: `node bench/postgres-store.ts [rounds]`. Rates of two runs are not comparable; their ratios are.
 *
 * The floor has no ids to ask for later, no retries, priorities, delays or answers; its claim is an update with a lease and
 * its end a DELETE. With history it moves what is finished into a table of its own, as the store always does.
 */

import { Client, Pool } from "pg";
import { jobId, type LeaseId, type NodeName } from "../src/core/ids.ts";
import { Batcher } from "../src/platform/batcher.ts";
import { systemClock } from "../src/platform/clock.ts";
import { systemRandom } from "../src/platform/random.ts";
import { PostgresStore } from "../src/store/postgres/postgres.ts";
import type { NewJob } from "../src/store/store.ts";
import { PostgresServer } from "../test/support/postgres-server.ts";

const CALLERS = 50;
const BATCH = 500;
const LOOPS = 2;
const SUBMIT_MS = 2_000;
const BULK = { size: 1_000, times: 40 };
const DRAIN = 60_000;
const PAYLOAD = JSON.stringify({ n: 1, at: 1_700_000_000_000, pad: "x".repeat(160) });

interface Subject {
  /** One job, resolved when it is durable. */
  submit(): Promise<unknown>;
  bulk(count: number): Promise<unknown>;
  /** Claims and finishes one batch; how many it had. */
  drain(): Promise<number>;
  clear(): Promise<void>;
  close(): Promise<void>;
}

async function openStore(url: string): Promise<Subject> {
  const store = new PostgresStore({ url, clock: systemClock });
  await store.start();
  const node = "node-a" as NodeName;
  const author = { node, ownerEpoch: 1, leaderEpoch: 1 };
  const make = (): NewJob => ({
    id: jobId(node, systemRandom.timedUuid()),
    task: "noop",
    queue: "default",
    priority: 0,
    payload: PAYLOAD,
    delayMs: 0,
    runAt: null,
    maxAttempts: 5,
    timeoutMs: 60_000,
    idempotencyKey: null,
  });
  const batcher = new Batcher<NewJob, unknown>({ flush: (jobs) => store.jobs.submit(jobs, author) });
  const request = {
    author,
    worker: node,
    lease: "node-a/1" as LeaseId,
    leaseMs: 30_000,
    limit: BATCH,
    tasks: new Set(["noop"]),
    queues: null,
    suspect: false,
  };
  return {
    submit: () => batcher.add(make()),
    bulk: (count) => store.jobs.submit(Array.from({ length: count }, make), author),
    async drain() {
      const { jobs } = await store.jobs.claim(request);
      const outcome = { kind: "completed", result: "null" } as const;
      if (jobs.length > 0) await store.jobs.settle(jobs.map((run) => ({ run, outcome })));
      return jobs.length;
    },
    clear: () => truncate(url, ["baton.job", "baton.live", "baton.done", "baton.tally"]),
    close: () => store.stop(),
  };
}

async function openFloor(url: string, history: boolean): Promise<Subject> {
  const pool = new Pool({ connectionString: url, max: 10 });
  pool.on("error", () => {});
  await pool.query(`
    CREATE TABLE job (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, payload jsonb NOT NULL, until timestamptz) WITH (fillfactor = 50);
    CREATE TABLE done (id bigint PRIMARY KEY, payload jsonb NOT NULL, at timestamptz NOT NULL DEFAULT now())`);
  const insert = {
    name: "insert",
    text: "INSERT INTO job (payload) SELECT jsonb_array_elements($1::jsonb)",
  };
  const claim = {
    name: "claim",
    text: `UPDATE job SET until = now() + interval '30 s' WHERE id = ANY (ARRAY(
      SELECT id FROM job WHERE until IS NULL OR until < now() ORDER BY id LIMIT ${BATCH} FOR UPDATE SKIP LOCKED)) RETURNING id, payload`,
  };
  const gone = "DELETE FROM job WHERE id = ANY ($1::bigint[])";
  const finish = {
    name: "finish",
    text: history
      ? `WITH gone AS (${gone} RETURNING id, payload) INSERT INTO done (id, payload) SELECT * FROM gone`
      : gone,
  };
  const write = (payloads: readonly string[]): Promise<unknown> =>
    pool.query({ ...insert, values: [`[${payloads.join(",")}]`] });
  const batcher = new Batcher<string, undefined>({
    flush: async (payloads) => {
      await write(payloads);
      return payloads.map(() => undefined);
    },
  });
  return {
    submit: () => batcher.add(PAYLOAD),
    bulk: (count) => write(Array.from({ length: count }, () => PAYLOAD)),
    async drain() {
      const { rows } = await pool.query<{ id: string }>(claim);
      if (rows.length > 0) await pool.query({ ...finish, values: [rows.map(({ id }) => id)] });
      return rows.length;
    },
    clear: () => truncate(url, ["job", "done"]),
    close: () => pool.end(),
  };
}

async function truncate(url: string, tables: readonly string[]): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  await client.query(`TRUNCATE ${tables.join(", ")}; CHECKPOINT`);
  await client.end();
}

const perSecond = (count: number, startedAt: number): number =>
  (count * 1_000) / (performance.now() - startedAt);

async function callers(subject: Subject): Promise<number> {
  const startedAt = performance.now();
  let count = 0;
  const one = async (): Promise<void> => {
    while (performance.now() - startedAt < SUBMIT_MS) {
      await subject.submit();
      count++;
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, one));
  return perSecond(count, startedAt);
}

async function bulk(subject: Subject): Promise<number> {
  const startedAt = performance.now();
  for (let i = 0; i < BULK.times; i++) await subject.bulk(BULK.size);
  return perSecond(BULK.size * BULK.times, startedAt);
}

async function drain(subject: Subject): Promise<number> {
  await subject.clear();
  for (let left = DRAIN; left > 0; left -= 1_000) await subject.bulk(1_000);
  const startedAt = performance.now();
  let count = 0;
  const loop = async (): Promise<void> => {
    for (let got = 1; got > 0; count += got) got = await subject.drain();
  };
  await Promise.all(Array.from({ length: LOOPS }, loop));
  if (count !== DRAIN) throw new Error(`${count} of ${DRAIN} jobs came out`);
  return perSecond(count, startedAt);
}

const SCENARIOS = { [`${CALLERS} callers`]: callers, [`bulk ${BULK.size}`]: bulk, drain } as const;

const rounds = Number(process.argv[2] ?? 3);
const server = await PostgresServer.start({
  durable: true,
  settings: ["shared_buffers=512MB", "max_wal_size=4GB"],
});
try {
  const subjects: Record<string, Subject> = {
    baton: await openStore(await server.createDatabase()),
    floor: await openFloor(await server.createDatabase(), false),
    "floor with history": await openFloor(await server.createDatabase(), true),
  };
  const medians = (values: number[]): number => values.sort((a, b) => a - b)[Math.floor(values.length / 2)]!;
  for (const [scenario, measure] of Object.entries(SCENARIOS)) {
    const rates = new Map<string, number[]>(Object.keys(subjects).map((name) => [name, []]));
    for (let round = -1; round < rounds; round++) {
      for (const [name, subject] of Object.entries(subjects)) {
        await subject.clear();
        const rate = await measure(subject);
        if (round >= 0) rates.get(name)!.push(rate); // the first one warms up
      }
    }
    const result = [...rates].map(([name, values]) => [name, medians(values)] as const);
    const ours = result[0]![1];
    const line = result.map(([name, rate]) => `${name} ${Math.round(rate)} (${(ours / rate).toFixed(2)})`);
    console.log(`${scenario.padEnd(12)} jobs/s: ${line.join(", ")}`);
  }
  for (const subject of Object.values(subjects)) await subject.close();
} finally {
  await server.stop();
}
