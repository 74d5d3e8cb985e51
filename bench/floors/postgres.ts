/**
 * What the server allows: the bare statements on the same PostgreSQL. No ids to ask for later, no retries, priorities,
 * delays, timeouts, leases that anybody looks at, or answers.
 */

import { Client, Pool } from "pg";
import { actions, type Actions } from "../actions.ts";
import type { Handler, Payload, Subject } from "../subject.ts";

export interface FloorOptions {
  readonly url: string;
  readonly serverPid?: number;
  /** Finished jobs go to a table of their own instead of away. */
  readonly history?: boolean;
  /** Every submit is its own INSERT in its own commit. */
  readonly single?: boolean;
  /** Whoever works may be another process, and is notified in the commit of the jobs. */
  readonly notify?: boolean;
}

/** The best of 100, 500 and 2,000; one loop's handlers run while the other's statement does. */
const BATCH = 500;
const LOOPS = 2;
const POLL_MS = 250;

/** Half of each page is kept free, so that a claim is a HOT update. */
const SCHEMA = `
  CREATE TABLE IF NOT EXISTS job (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, payload jsonb NOT NULL, until timestamptz
  ) WITH (fillfactor = 50);
  CREATE TABLE IF NOT EXISTS done (
    id bigint PRIMARY KEY, payload jsonb NOT NULL, at timestamptz NOT NULL DEFAULT now()
  )`;

const INSERT_ONE = "INSERT INTO job (payload) VALUES ($1::jsonb)";
const INSERT = "INSERT INTO job (payload) SELECT jsonb_array_elements($1::jsonb)";
const CLAIM = `
  UPDATE job SET until = now() + interval '30 s' WHERE id = ANY (ARRAY(
    SELECT id FROM job WHERE until IS NULL OR until < now() ORDER BY id LIMIT ${BATCH} FOR UPDATE SKIP LOCKED
  )) RETURNING id, payload`;
const FINISH = "DELETE FROM job WHERE id = ANY ($1::bigint[])";
const KEEP = `WITH gone AS (${FINISH} RETURNING id, payload) INSERT INTO done (id, payload) SELECT * FROM gone`;

const notifying = (insert: string): string =>
  `WITH written AS (${insert} RETURNING 1) SELECT pg_notify('ready', '') FROM written LIMIT 1`;

class PostgresFloor implements Subject {
  readonly #options: FloorOptions;
  readonly #pool: Pool;
  #listener: Client | null = null;
  #handler: Handler | null = null;
  #loops: Promise<void>[] = [];
  #resting = new Set<() => void>();
  /** Somebody called while nobody was at rest. */
  #called = false;
  #waiting: { readonly text: string; readonly resolve: () => void; readonly reject: (e: unknown) => void }[] =
    [];
  #flushing = false;

  constructor(options: FloorOptions) {
    this.#options = options;
    this.#pool = new Pool({ connectionString: options.url, max: 10 });
    this.#pool.on("error", () => {});
  }

  async reset(): Promise<void> {
    await this.#rest();
    await this.#pool.query(SCHEMA);
    await this.#pool.query("TRUNCATE job, done");
  }

  submit(payload: Payload): Promise<unknown> {
    const text = JSON.stringify(payload);
    if (this.#options.single) return this.#insert("one", INSERT_ONE, text);
    return new Promise<void>((resolve, reject) => {
      this.#waiting.push({ text, resolve, reject });
      if (this.#flushing) return;
      this.#flushing = true;
      setImmediate(() => void this.#flush());
    });
  }

  submitMany(payloads: readonly Payload[]): Promise<unknown> {
    return this.#insert("many", INSERT, JSON.stringify(payloads));
  }

  async work(handler: Handler): Promise<void> {
    this.#handler = handler;
    if (this.#options.notify && !this.#listener) {
      this.#listener = new Client({ connectionString: this.#options.url });
      this.#listener.on("error", () => {});
      this.#listener.on("notification", () => this.#wake());
      await this.#listener.connect();
      await this.#listener.query("LISTEN ready");
    }
    if (this.#loops.length === 0) this.#loops = Array.from({ length: LOOPS }, () => this.#loop());
  }

  async unfinished(): Promise<number> {
    const { rows } = await this.#pool.query<{ n: number }>(
      "SELECT count(*)::int AS n FROM (SELECT FROM job LIMIT 1) AS one",
    );
    return rows[0]!.n;
  }

  async close(): Promise<void> {
    await this.#rest();
    await this.#pool.end();
  }

  async #flush(): Promise<void> {
    while (this.#waiting.length > 0) {
      const group = this.#waiting;
      this.#waiting = [];
      try {
        await this.#insert("many", INSERT, `[${group.map(({ text }) => text).join(",")}]`);
        for (const { resolve } of group) resolve();
      } catch (error) {
        for (const { reject } of group) reject(error);
      }
    }
    this.#flushing = false;
  }

  async #insert(name: string, text: string, payload: string): Promise<void> {
    await this.#pool.query({ name, text: this.#options.notify ? notifying(text) : text, values: [payload] });
    this.#wake();
  }

  #wake(): void {
    const [first] = this.#resting;
    if (first) first();
    else this.#called = true;
  }

  async #loop(): Promise<void> {
    const client = await this.#pool.connect();
    const finish = { name: "finish", text: this.#options.history ? KEEP : FINISH };
    try {
      for (let handler = this.#handler; handler; handler = this.#handler) {
        this.#called = false;
        const { rows } = await client.query<{ id: string; payload: Payload }>({ name: "claim", text: CLAIM });
        for (const { payload } of rows) await handler(payload);
        if (rows.length > 0) await client.query({ ...finish, values: [rows.map(({ id }) => id)] });
        else if (!this.#called) await this.#restALittle();
      }
    } finally {
      client.release();
    }
  }

  #restALittle(): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        clearTimeout(timer);
        this.#resting.delete(wake);
        resolve();
      };
      const timer = setTimeout(wake, POLL_MS);
      this.#resting.add(wake);
    });
  }

  /** Nobody at work. */
  async #rest(): Promise<void> {
    this.#handler = null;
    for (const wake of this.#resting) wake();
    await Promise.all(this.#loops);
    this.#loops = [];
    await this.#listener?.end();
    this.#listener = null;
  }
}

export async function open(options: FloorOptions): Promise<Actions> {
  const floor = new PostgresFloor(options);
  await floor.reset();
  return actions(floor, options);
}
