/**
 * A floor with the guarantees of a queue: jobs are rows that never change, and what waits, runs and has finished are ranges of their ids.
 * A claim takes ranges in the order of priority and due time under a lease, cuts the last one, and writes one row; a settlement turns that
 * row into history. There are no retries, delays, cancellation or partial settlements.
 */
import { randomBytes } from "node:crypto";
import pg from "pg";
import type { Contender, Context, Entry, Handler, Job, WorkMode } from "../types.ts";
import { coalesce, sleep } from "../util.ts";

const BATCH = Number(process.env.BENCH_BATCH ?? 500);
const LOOPS = 2;
/** Jobs of one range, so that several claims can share a large submit. */
const CHUNK = 250;
const LEASE_MS = 1000;
const POLL_MS = 100;

const PLANS =
  "-c plan_cache_mode=force_generic_plan -c enable_seqscan=off -c enable_hashjoin=off -c enable_mergejoin=off -c enable_bitmapscan=off -c jit=off";

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS lease (
    id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, expires_at bigint NOT NULL
  ) WITH (fillfactor = 50);
  CREATE TABLE IF NOT EXISTS tally (status smallint NOT NULL, n bigint NOT NULL);
  CREATE TABLE IF NOT EXISTS job (
    id uuid PRIMARY KEY, created_at bigint NOT NULL, timeout_ms bigint, max_attempts int NOT NULL,
    priority smallint NOT NULL, payload text NOT NULL
  );
  CREATE TABLE IF NOT EXISTS line (
    at uuid NOT NULL, last uuid NOT NULL, n int NOT NULL, due bigint NOT NULL, priority smallint NOT NULL,
    epoch int NOT NULL DEFAULT 0, attempts int NOT NULL DEFAULT 0
  ) WITH (fillfactor = 80);
  CREATE INDEX IF NOT EXISTS line_head ON line (priority DESC, due, last);
  CREATE TABLE IF NOT EXISTS run (
    lease int NOT NULL, no int NOT NULL, started_at bigint NOT NULL, n int NOT NULL,
    firsts uuid[] NOT NULL, lasts uuid[] NOT NULL, counts int[] NOT NULL, epochs int[] NOT NULL,
    PRIMARY KEY (lease, no)
  ) WITH (fillfactor = 50);
  CREATE TABLE IF NOT EXISTS done (
    first uuid PRIMARY KEY, last uuid NOT NULL, n int NOT NULL, started_at bigint NOT NULL,
    finished_at bigint NOT NULL, lease int NOT NULL, epoch int NOT NULL, status smallint NOT NULL
  );`;

const INSERT_JOBS = `
  INSERT INTO job (id, created_at, max_attempts, priority, payload)
  SELECT a.id, $1::bigint, 3, 0, a.payload FROM unnest($2::uuid[], $3::text[]) AS a (id, payload)`;
const INSERT_RANGES = `
  INSERT INTO line (at, last, n, due, priority)
  SELECT r.first, r.last, r.n, $1::bigint, 0 FROM unnest($4::uuid[], $5::uuid[], $6::int[]) AS r (first, last, n)`;
const INSERT = `WITH jobs AS (${INSERT_JOBS}) ${INSERT_RANGES}`;
const INSERT_AND_WAKE = `
  WITH jobs AS (${INSERT_JOBS}), lines AS (${INSERT_RANGES} RETURNING 1)
  SELECT pg_notify('wake', '') FROM lines LIMIT 1`;

/** $1 now, $2 lease, $3 ranges to look at, $4 jobs wanted, $5 number of the claim. */
const CLAIM = `
  WITH open AS MATERIALIZED (SELECT id FROM lease WHERE id = $2 AND expires_at > $1 FOR KEY SHARE),
  candidate AS MATERIALIZED (
    SELECT l.* FROM open CROSS JOIN LATERAL (
      SELECT priority, due, last, at, n FROM line ORDER BY priority DESC, due, last LIMIT $3 FOR UPDATE SKIP LOCKED
    ) AS l
  ),
  pick AS MATERIALIZED (
    SELECT priority, due, last, at, n, least(n, $4::int - before)::int AS take FROM (
      SELECT *, sum(n) OVER (ORDER BY priority DESC, due, last ROWS UNBOUNDED PRECEDING) - n AS before FROM candidate
    ) AS c WHERE before < $4::int
  ),
  cut AS MATERIALIZED (
    SELECT priority, due, last, at AS first, take,
      (SELECT id FROM job WHERE id >= pick.at ORDER BY id OFFSET pick.take LIMIT 1) AS next,
      (SELECT id FROM job WHERE id >= pick.at ORDER BY id OFFSET pick.take - 1 LIMIT 1) AS upto
    FROM pick WHERE take < n
  ),
  gone AS (
    DELETE FROM line l USING pick p
    WHERE p.take = p.n AND l.priority = p.priority AND l.due = p.due AND l.last = p.last
    RETURNING l.at, l.last, l.n, l.epoch, l.priority, l.due
  ),
  less AS (
    UPDATE line l SET at = cut.next, n = l.n - cut.take FROM cut
    WHERE l.priority = cut.priority AND l.due = cut.due AND l.last = cut.last
    RETURNING cut.first, cut.upto, cut.take, l.epoch, l.priority, l.due
  ),
  taken AS MATERIALIZED (
    SELECT at AS first, last, n, epoch + 1 AS epoch, row_number() OVER (ORDER BY priority DESC, due, last) AS nr
    FROM (SELECT * FROM gone UNION ALL SELECT * FROM less) AS t
  ),
  run AS (
    INSERT INTO run (lease, no, started_at, n, firsts, lasts, counts, epochs)
    SELECT $2, $5, $1, sum(n), array_agg(first ORDER BY nr), array_agg(last ORDER BY nr), array_agg(n ORDER BY nr),
      array_agg(epoch ORDER BY nr)
    FROM taken HAVING count(*) > 0
  )
  SELECT t.n, (SELECT string_agg(j.payload, ',' ORDER BY j.id) FROM job j WHERE j.id >= t.first AND j.id <= t.last)
    AS payloads
  FROM taken t ORDER BY t.nr`;

/** $1 now, $2 lease, $3 number of the claim. */
const SETTLE = `
  WITH gone AS (DELETE FROM run WHERE lease = $2 AND no = $3 RETURNING *),
  kept AS (
    INSERT INTO done (first, last, n, started_at, finished_at, lease, epoch, status)
    SELECT r.first, r.last, r.n, g.started_at, $1, g.lease, r.epoch, 3
    FROM gone g CROSS JOIN unnest(g.firsts, g.lasts, g.counts, g.epochs) AS r (first, last, n, epoch)
  )
  INSERT INTO tally SELECT 3, n FROM gone`;

class PgRange implements Contender {
  #url: string;
  #pool: pg.Pool;
  #add = coalesce<Job>((jobs) => this.#insert(jobs, true), 1000, 2);
  #lease = 0;
  #claims = 0;
  /** Ranges that the next claim looks at. */
  #look = 3;
  #renewal: NodeJS.Timeout | undefined;
  #listener: pg.Client | undefined;
  #loops: Promise<void>[] = [];
  #idle: (() => void)[] = [];
  #stopping = false;

  constructor(context: Context) {
    this.#url = context.pgUrl;
    this.#pool = new pg.Pool({ connectionString: context.pgUrl, max: 12, options: PLANS });
    this.#pool.on("error", () => {});
  }

  async start(): Promise<void> {
    const client = await this.#pool.connect();
    try {
      await client.query("BEGIN");
      await client.query("SELECT pg_advisory_xact_lock(4711)");
      await client.query(SCHEMA);
      await client.query("COMMIT");
    } finally {
      client.release();
    }
  }

  async reset(): Promise<void> {
    await this.#pool.query("TRUNCATE job, line, run, done, tally");
  }

  enqueue(job: Job): Promise<void> {
    return this.#add(job);
  }

  enqueueMany(jobs: Job[]): Promise<void> {
    return this.#insert(jobs, false);
  }

  async #insert(jobs: Job[], wake: boolean): Promise<void> {
    const ids = consecutiveIds(jobs.length);
    const starts = Array.from({ length: Math.ceil(jobs.length / CHUNK) }, (_, i) => i * CHUNK);
    const ends = starts.map((from) => Math.min(from + CHUNK, jobs.length));
    await this.#pool.query({
      name: wake ? "insert-and-wake" : "insert",
      text: wake ? INSERT_AND_WAKE : INSERT,
      values: [
        Date.now(),
        ids,
        jobs.map((job) => JSON.stringify(job)),
        starts.map((from) => ids[from]),
        ends.map((end) => ids[end - 1]),
        starts.map((from, i) => ends[i]! - from),
      ],
    });
  }

  async work(_mode: WorkMode, handler: Handler): Promise<void> {
    const { rows } = await this.#pool.query("INSERT INTO lease (expires_at) VALUES ($1) RETURNING id", [
      Date.now() + LEASE_MS,
    ]);
    this.#lease = rows[0].id;
    const renew = { name: "renew", text: "UPDATE lease SET expires_at = $2 WHERE id = $1" };
    this.#renewal = setInterval(
      () => void this.#pool.query({ ...renew, values: [this.#lease, Date.now() + LEASE_MS] }).catch(() => {}),
      LEASE_MS / 3,
    );
    this.#listener = new pg.Client({ connectionString: this.#url });
    this.#listener.on("error", () => {});
    this.#listener.on("notification", () => this.#idle.shift()?.());
    await this.#listener.connect();
    await this.#listener.query("LISTEN wake");
    this.#loops = Array.from({ length: LOOPS }, () => this.#loop(handler));
  }

  /** The settlement of one batch is under way while the next one is claimed. */
  async #loop(handler: Handler): Promise<void> {
    const client = await this.#pool.connect();
    let settling: Promise<unknown> = Promise.resolve();
    try {
      while (!this.#stopping) {
        const no = ++this.#claims;
        const [jobs] = await Promise.all([this.#claim(client, no), settling]);
        if (jobs.length === 0) {
          await this.#rest();
          continue;
        }
        for (const job of jobs) await handler(job);
        settling = client.query({ name: "settle", text: SETTLE, values: [Date.now(), this.#lease, no] });
      }
      await settling;
    } finally {
      client.release();
    }
  }

  async #claim(client: pg.PoolClient, no: number): Promise<Job[]> {
    const values = [Date.now(), this.#lease, this.#look, BATCH, no];
    const { rows } = await client.query<{ n: number; payloads: string }>({
      name: "claim",
      text: CLAIM,
      values,
    });
    const jobs = JSON.parse(`[${rows.map(({ payloads }) => payloads).join(",")}]`) as Job[];
    // As many as this one needed, or twice as many if it got too little.
    if (jobs.length >= BATCH) this.#look = rows.length + 1;
    else this.#look = rows.length === 0 ? 3 : Math.min(BATCH, this.#look * 2);
    return jobs;
  }

  #rest(): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        clearTimeout(timer);
        this.#idle = this.#idle.filter((each) => each !== wake);
        resolve();
      };
      const timer = setTimeout(wake, POLL_MS);
      this.#idle.push(wake);
    });
  }

  async unfinished(): Promise<number> {
    const { rows } = await this.#pool.query(
      "SELECT (SELECT count(*) FROM (SELECT FROM line LIMIT 1) AS l) + (SELECT count(*) FROM (SELECT FROM run LIMIT 1) AS r) AS n",
    );
    return Number(rows[0].n);
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    clearInterval(this.#renewal);
    for (const wake of this.#idle) wake();
    await Promise.race([Promise.all(this.#loops), sleep(2000)]);
    await this.#listener?.end();
    await this.#pool.end();
  }
}

let lastMs = 0;

/** UUIDs of version 7: a time that never repeats in this process, chance, and a count. */
function consecutiveIds(n: number): string[] {
  lastMs = Math.max(Date.now(), lastMs + 1);
  const time = lastMs.toString(16).padStart(12, "0");
  const chance = randomBytes(4).toString("hex");
  const head = `${time.slice(0, 8)}-${time.slice(8)}-7000-8${chance.slice(0, 3)}-${chance.slice(3, 7)}`;
  return Array.from({ length: n }, (_, i) => head + i.toString(16).padStart(8, "0"));
}

export const entries: Entry[] = [
  {
    name: "pg-range",
    kind: "floor",
    store: "postgres",
    durability: "fsync on every commit",
    settings: `ranges of ids under a lease of ${LEASE_MS} ms, history kept; concurrent calls grouped; claims of ${BATCH}; ${LOOPS} loops; NOTIFY`,
    create: (context) => new PgRange(context),
    drainJobs: 600_000,
  },
];
