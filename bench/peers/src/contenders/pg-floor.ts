// What plain SQL on the same Postgres can do, with fsync on. Two designs:
//   lease: claim a batch (UPDATE … SKIP LOCKED), run it, DELETE the batch: two commits a batch, crash found by a lease.
//   tx:    DELETE … SKIP LOCKED RETURNING, run, COMMIT: one commit a batch, crash found by the server at once.
import pg from "pg";
import { from as copyFrom } from "pg-copy-streams";
import type { Contender, Context, Entry, Handler, Job, WorkMode } from "../types.ts";
import { coalesce, sleep } from "../util.ts";

const BATCH = 500;

class PgFloor implements Contender {
  #pool: pg.Pool;
  #url: string;
  #design: "lease" | "tx";
  #grouped: boolean;
  #copy: boolean;
  #t: string;
  #stopping = false;
  #loops: Promise<void>[] = [];
  #listener: pg.Client | undefined;
  #wake: (() => void)[] = [];
  #add: (job: Job) => Promise<void>;

  constructor(
    context: Context,
    table: string,
    design: "lease" | "tx",
    options: { grouped: boolean; copy: boolean; pool: number },
  ) {
    this.#url = context.pgUrl;
    this.#pool = new pg.Pool({ connectionString: context.pgUrl, max: options.pool });
    this.#t = table;
    this.#design = design;
    this.#grouped = options.grouped;
    this.#copy = options.copy;
    this.#add = coalesce<Job>((jobs) => this.#insert(jobs), 1000, 2);
  }

  async start(): Promise<void> {
    const client = await this.#pool.connect();
    try {
      await client.query("BEGIN");
      await client.query("SELECT pg_advisory_xact_lock(4711)");
      await client.query(`
        CREATE TABLE IF NOT EXISTS ${this.#t} (
          id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
          payload jsonb NOT NULL,
          locked_until timestamptz
        ) WITH (fillfactor = 70);
        CREATE TABLE IF NOT EXISTS ${this.#t}_done (
          id bigint PRIMARY KEY, payload jsonb NOT NULL, done_at timestamptz NOT NULL DEFAULT now()
        );`);
      await client.query("COMMIT");
    } finally {
      client.release();
    }
  }

  async reset(): Promise<void> {
    await this.#pool.query(`TRUNCATE ${this.#t}; TRUNCATE ${this.#t}_done`);
  }

  async #insert(jobs: Job[]): Promise<void> {
    await this.#pool.query({
      name: `${this.#t}-insert`,
      text: `WITH ins AS (INSERT INTO ${this.#t} (payload) SELECT unnest($1::text[])::jsonb RETURNING 1)
             SELECT pg_notify('${this.#t}', '') FROM ins LIMIT 1`,
      values: [jobs.map((j) => JSON.stringify(j))],
    });
  }

  async enqueue(job: Job): Promise<void> {
    if (this.#grouped) return this.#add(job);
    await this.#pool.query({
      name: `${this.#t}-insert1`,
      text: `WITH ins AS (INSERT INTO ${this.#t} (payload) VALUES ($1::jsonb) RETURNING 1)
             SELECT pg_notify('${this.#t}', '') FROM ins`,
      values: [JSON.stringify(job)],
    });
  }

  async enqueueMany(jobs: Job[]): Promise<void> {
    if (!this.#copy) return this.#insert(jobs);
    const client = await this.#pool.connect();
    try {
      const stream = client.query(copyFrom(`COPY ${this.#t} (payload) FROM STDIN`));
      const done = new Promise<void>((resolve, reject) => {
        stream.once("finish", resolve);
        stream.once("error", reject);
      });
      stream.end(jobs.map((j) => `${JSON.stringify(j).replaceAll("\\", "\\\\")}\n`).join(""));
      await done;
    } finally {
      client.release();
    }
  }

  async work(mode: WorkMode, handler: Handler): Promise<void> {
    const listener = new pg.Client({ connectionString: this.#url });
    listener.on("error", () => {});
    await listener.connect();
    await listener.query(`LISTEN ${this.#t}`);
    listener.on("notification", () => this.#wakeOne());
    this.#listener = listener;
    const recover = mode.startsWith("recover");
    const loops = recover ? 1 : 2;
    const batch = recover ? 1 : BATCH;
    const poll = recover ? 25 : 250;
    for (let i = 0; i < loops; i++)
      this.#loops.push(
        this.#design === "tx"
          ? this.#txLoop(mode, handler, batch, poll)
          : this.#leaseLoop(mode, handler, batch, poll),
      );
  }

  #wakeOne(): void {
    this.#wake.shift()?.();
  }

  #idle(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(done, ms);
      const wake = this.#wake;
      function done(): void {
        clearTimeout(timer);
        const at = wake.indexOf(done);
        if (at >= 0) wake.splice(at, 1);
        resolve();
      }
      wake.push(done);
    });
  }

  async #leaseLoop(mode: WorkMode, handler: Handler, batch: number, poll: number): Promise<void> {
    const lease = mode === "recover-tight" ? 1 : 30;
    const claim = {
      name: `${this.#t}-claim`,
      text: `UPDATE ${this.#t} SET locked_until = now() + make_interval(secs => $2)
             WHERE id = ANY (ARRAY(SELECT id FROM ${this.#t} WHERE locked_until IS NULL OR locked_until < now()
                                   ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED))
             RETURNING id, payload`,
    };
    const client = await this.#pool.connect();
    try {
      while (!this.#stopping) {
        const { rows } = await client.query({ ...claim, values: [batch, lease] });
        if (rows.length === 0) {
          await this.#idle(poll);
          continue;
        }
        const ids = rows.map((r) => r.id);
        const renew = setInterval(
          () =>
            void this.#pool.query(
              `UPDATE ${this.#t} SET locked_until = now() + make_interval(secs => $2) WHERE id = ANY($1)`,
              [ids, lease],
            ),
          (lease * 1000) / 3,
        );
        for (const row of rows) await handler(row.payload);
        clearInterval(renew);
        await client.query(this.#finish(mode, ids));
      }
    } finally {
      client.release();
    }
  }

  #finish(mode: WorkMode, ids: string[]): { name: string; text: string; values: unknown[] } {
    if (mode === "retain") {
      return {
        name: `${this.#t}-move`,
        text: `WITH d AS (DELETE FROM ${this.#t} WHERE id = ANY($1::bigint[]) RETURNING id, payload) INSERT INTO ${this.#t}_done (id, payload) SELECT * FROM d`,
        values: [ids],
      };
    }
    return {
      name: `${this.#t}-delete`,
      text: `DELETE FROM ${this.#t} WHERE id = ANY($1::bigint[])`,
      values: [ids],
    };
  }

  async #txLoop(mode: WorkMode, handler: Handler, batch: number, poll: number): Promise<void> {
    const take = {
      name: `${this.#t}-take`,
      text: `DELETE FROM ${this.#t} WHERE id = ANY (ARRAY(SELECT id FROM ${this.#t} ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED)) RETURNING id, payload`,
    };
    const client = await this.#pool.connect();
    try {
      while (!this.#stopping) {
        void client.query("BEGIN");
        const { rows } = await client.query({ ...take, values: [batch] });
        if (rows.length === 0) {
          await client.query("COMMIT");
          await this.#idle(poll);
          continue;
        }
        for (const row of rows) await handler(row.payload);
        if (mode === "retain") {
          void client.query({
            name: `${this.#t}-keep`,
            text: `INSERT INTO ${this.#t}_done (id, payload) SELECT * FROM unnest($1::bigint[], $2::jsonb[])`,
            values: [rows.map((r) => r.id), rows.map((r) => JSON.stringify(r.payload))],
          });
        }
        await client.query("COMMIT");
      }
    } finally {
      client.release();
    }
  }

  async unfinished(): Promise<number> {
    return Number(
      (await this.#pool.query(`SELECT count(*) AS c FROM (SELECT 1 FROM ${this.#t} LIMIT 1) x`)).rows[0].c,
    );
  }

  async seedHistory(count: number): Promise<void> {
    await this.#pool.query(
      `INSERT INTO ${this.#t}_done (id, payload, done_at) SELECT -i, jsonb_build_object('n', i, 't', i, 'pad', repeat('x', 160)), now() FROM generate_series(1, ${count}) i`,
    );
    await this.#pool.query(`VACUUM ANALYZE ${this.#t}_done`);
  }

  async storeBytes(): Promise<number> {
    return Number(
      (
        await this.#pool.query(
          `SELECT pg_total_relation_size('${this.#t}') + pg_total_relation_size('${this.#t}_done') AS b`,
        )
      ).rows[0].b,
    );
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    for (const w of [...this.#wake]) w();
    await Promise.race([Promise.all(this.#loops), sleep(2000)]);
    await this.#listener?.end();
    await this.#pool.end();
  }
}

export const entries: Entry[] = [
  {
    name: "pg-plain",
    kind: "floor",
    store: "postgres",
    durability: "fsync on every commit",
    settings:
      "one INSERT a call (pool 20), bulk by unnest; claim 500 by UPDATE SKIP LOCKED, DELETE 500; 2 loops; NOTIFY",
    create: (context) =>
      new PgFloor(context, "floor_plain", "lease", { grouped: false, copy: false, pool: 20 }),
    drainJobs: 70_000,
    keeps: true,
    recovery: {
      default: "30 s lease",
      measureDefault: false,
      tight: "1 s lease renewed every 333 ms, poll 25 ms",
    },
  },
  {
    name: "pg-floor",
    kind: "floor",
    store: "postgres",
    durability: "fsync on every commit",
    settings:
      "concurrent calls grouped into one INSERT, bulk by COPY; DELETE … SKIP LOCKED RETURNING 500 in a transaction around the handlers; 2 loops; NOTIFY",
    create: (context) => new PgFloor(context, "floor_tx", "tx", { grouped: true, copy: true, pool: 20 }),
    drainJobs: 100_000,
    keeps: true,
    recovery: {
      default: "row lock of a dead connection; poll 25 ms",
      measureDefault: false,
      tight: "row lock of a dead connection; poll 25 ms",
    },
  },
];
