/**
 * What the engine allows: the bare statements, with the same pragmas as Baton's store. No ids to ask for later, no
 * retries, priorities, delays, timeouts, leases that anybody looks at, or answers.
 */

import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { actions, type Actions } from "../actions.ts";
import type { Handler, Payload, Subject } from "../subject.ts";

export interface FloorOptions {
  readonly dir: string;
  /** Finished jobs go to a table of their own instead of away. */
  readonly history?: boolean;
  /** Every submit is its own transaction, written in the caller's turn: the shortest way to the disk for one. */
  readonly single?: boolean;
}

/** The best of 100, 500 and 2,000. */
const BATCH = 500;

const SCHEMA = `
  PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
  PRAGMA cache_size = -65536; PRAGMA wal_autocheckpoint = 4000;
  CREATE TABLE job (id INTEGER PRIMARY KEY AUTOINCREMENT, payload TEXT NOT NULL) STRICT;
  CREATE TABLE running (id INTEGER PRIMARY KEY, payload TEXT NOT NULL, until INTEGER NOT NULL) STRICT;
  CREATE TABLE done (id INTEGER PRIMARY KEY, payload TEXT NOT NULL, finished_at INTEGER NOT NULL) STRICT;`;

interface Row {
  readonly id: number;
  readonly payload: string;
}

class SqliteFloor implements Subject {
  readonly #options: FloorOptions;
  #db: DatabaseSync | null = null;
  #sql!: Record<"insert" | "insertMany" | "claim" | "run" | "keep" | "finish" | "left", StatementSync>;
  #handler: Handler | null = null;
  #working = false;
  #waiting: { readonly text: string; readonly resolve: () => void }[] = [];

  constructor(options: FloorOptions) {
    this.#options = options;
  }

  async reset(): Promise<void> {
    await this.close();
    rmSync(this.#options.dir, { recursive: true, force: true });
    mkdirSync(this.#options.dir, { recursive: true });
    const db = new DatabaseSync(join(this.#options.dir, "floor.db"));
    db.exec(SCHEMA);
    this.#sql = {
      insert: db.prepare("INSERT INTO job (payload) VALUES (?)"),
      insertMany: db.prepare("INSERT INTO job (payload) SELECT value FROM json_each(?)"),
      claim: db.prepare(
        `DELETE FROM job WHERE id IN (SELECT id FROM job ORDER BY id LIMIT ${BATCH}) RETURNING id, payload`,
      ),
      run: db.prepare("INSERT INTO running VALUES (?, ?, ?)"),
      keep: db.prepare(
        "INSERT INTO done SELECT id, payload, ? FROM running WHERE id IN (SELECT value FROM json_each(?))",
      ),
      finish: db.prepare("DELETE FROM running WHERE id IN (SELECT value FROM json_each(?))"),
      left: db.prepare("SELECT (SELECT count(*) FROM job) + (SELECT count(*) FROM running) AS n"),
    };
    this.#db = db;
  }

  submit(payload: Payload): Promise<unknown> {
    const text = JSON.stringify(payload);
    if (this.#options.single) return Promise.resolve(this.#sql.insert.run(text));
    return new Promise<void>((resolve) => {
      this.#waiting.push({ text, resolve });
      if (this.#waiting.length === 1) setImmediate(() => this.#flush());
    });
  }

  async submitMany(payloads: readonly Payload[]): Promise<void> {
    this.#sql.insertMany.run(JSON.stringify(payloads.map((payload) => JSON.stringify(payload))));
    this.#wake();
  }

  work(handler: Handler): void {
    this.#handler = handler;
    this.#wake();
  }

  /** Counted only when the worker rests: a count walks the whole table. */
  unfinished(): number {
    return this.#working ? Infinity : (this.#sql.left.get()!["n"] as number);
  }

  async close(): Promise<void> {
    this.#handler = null;
    this.#db?.close();
    this.#db = null;
  }

  #flush(): void {
    const group = this.#waiting;
    this.#waiting = [];
    this.#transaction(() => {
      for (const { text } of group) this.#sql.insert.run(text);
    });
    for (const { resolve } of group) resolve();
    this.#wake();
  }

  #wake(): void {
    if (!this.#handler || this.#working) return;
    this.#working = true;
    void this.#drain(this.#handler);
  }

  async #drain(handler: Handler): Promise<void> {
    let finished: number[] = [];
    for (;;) {
      const rows = this.#transaction(() => this.#finishAndClaim(finished));
      if (rows.length === 0) break;
      for (const row of rows) await handler(JSON.parse(row.payload) as Payload);
      finished = rows.map(({ id }) => id);
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
    this.#working = false;
  }

  #finishAndClaim(finished: readonly number[]): Row[] {
    const now = Date.now();
    if (finished.length > 0) {
      const ids = JSON.stringify(finished);
      if (this.#options.history) this.#sql.keep.run(now, ids);
      this.#sql.finish.run(ids);
    }
    const rows = this.#sql.claim.all() as unknown as Row[];
    for (const { id, payload } of rows) this.#sql.run.run(id, payload, now + 30_000);
    return rows;
  }

  #transaction<T>(body: () => T): T {
    this.#db!.exec("BEGIN IMMEDIATE");
    const result = body();
    this.#db!.exec("COMMIT");
    return result;
  }
}

export async function open(options: FloorOptions): Promise<Actions> {
  const floor = new SqliteFloor(options);
  await floor.reset();
  return actions(floor);
}
