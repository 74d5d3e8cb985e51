// node:sqlite in WAL mode. Calls of one tick share a transaction; finishing a batch and claiming the next share one too.
import { watch, type FSWatcher } from "node:fs";
import { join } from "node:path";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import type { Contender, Context, Entry, Handler, Job, WorkMode } from "../types.ts";
import { coalesce, sleep } from "../util.ts";

const BATCH = 500;

class SqliteFloor implements Contender {
  #path: string;
  #sync: string;
  #db!: DatabaseSync;
  #insert!: StatementSync;
  #insertMany!: StatementSync;
  #claim!: StatementSync;
  #remove!: StatementSync;
  #keep!: StatementSync;
  #left!: StatementSync;
  #expired!: StatementSync;
  #stopping = false;
  #loop: Promise<void> | undefined;
  #watcher: FSWatcher | undefined;
  #wake: (() => void) | undefined;
  #add = coalesce<Job>((jobs) => this.#insertAll(jobs));

  constructor(context: Context, sync: string) {
    this.#path = join(context.dataDir, `sqlite-${sync}.db`);
    this.#sync = sync;
  }

  async start(): Promise<void> {
    const db = new DatabaseSync(this.#path, { timeout: 10_000 });
    db.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = ${this.#sync}; PRAGMA cache_size = -65536; PRAGMA wal_autocheckpoint = 4000;
      CREATE TABLE IF NOT EXISTS job (id INTEGER PRIMARY KEY AUTOINCREMENT, payload TEXT NOT NULL, locked_until INTEGER NOT NULL DEFAULT 0) STRICT;
      CREATE TABLE IF NOT EXISTS running (id INTEGER PRIMARY KEY, payload TEXT NOT NULL, locked_until INTEGER NOT NULL) STRICT;
      CREATE TABLE IF NOT EXISTS done (id INTEGER PRIMARY KEY, payload TEXT NOT NULL, done_at INTEGER NOT NULL) STRICT;`);
    this.#db = db;
    this.#insert = db.prepare("INSERT INTO job (payload) VALUES (?)");
    this.#insertMany = db.prepare("INSERT INTO job (payload) SELECT value FROM json_each(?)");
    this.#claim = db.prepare(
      "DELETE FROM job WHERE id IN (SELECT id FROM job ORDER BY id LIMIT ?) RETURNING id, payload",
    );
    this.#expired = db.prepare(
      "UPDATE running SET locked_until = ? WHERE id IN (SELECT id FROM running WHERE locked_until < ? LIMIT ?) RETURNING id, payload",
    );
    this.#remove = db.prepare("DELETE FROM running WHERE id IN (SELECT value FROM json_each(?))");
    this.#keep = db.prepare(
      "INSERT INTO done SELECT id, payload, unixepoch() FROM running WHERE id IN (SELECT value FROM json_each(?))",
    );
    this.#left = db.prepare(
      "SELECT (SELECT count(*) FROM (SELECT 1 FROM job LIMIT 1)) + (SELECT count(*) FROM (SELECT 1 FROM running LIMIT 1)) AS c",
    );
  }

  async reset(): Promise<void> {
    this.#db.exec("DELETE FROM job; DELETE FROM running; DELETE FROM done; PRAGMA wal_checkpoint(TRUNCATE)");
  }

  #transaction<T>(body: () => T): T {
    this.#db.exec("BEGIN IMMEDIATE");
    try {
      const result = body();
      this.#db.exec("COMMIT");
      return result;
    } catch (error) {
      this.#db.exec("ROLLBACK");
      throw error;
    }
  }

  #insertAll(jobs: Job[]): void {
    if (jobs.length === 1) this.#insert.run(JSON.stringify(jobs[0]));
    else this.#transaction(() => jobs.forEach((j) => this.#insert.run(JSON.stringify(j))));
    this.#wake?.();
  }

  enqueue(job: Job): Promise<void> {
    return this.#add(job);
  }

  async enqueueMany(jobs: Job[]): Promise<void> {
    this.#transaction(() => this.#insertMany.run(JSON.stringify(jobs.map((j) => JSON.stringify(j)))));
    this.#wake?.();
  }

  async work(mode: WorkMode, handler: Handler): Promise<void> {
    const wake = (): void => this.#wake?.();
    if (mode !== "throughput" && mode !== "retain") this.#watcher = watch(`${this.#path}-wal`, wake);
    this.#loop = this.#run(mode, handler);
  }

  async #run(mode: WorkMode, handler: Handler): Promise<void> {
    const recover = mode.startsWith("recover");
    const lease = mode === "recover-tight" ? 1000 : 30_000;
    const batch = recover ? 1 : BATCH;
    const running = this.#db.prepare("INSERT INTO running VALUES (?, ?, ?)");
    let finished: number[] = [];
    while (!this.#stopping) {
      const before = this.#left.get() as { c: number };
      let rows: { id: number; payload: string }[] = [];
      if (before.c > 0 || finished.length > 0) {
        rows = this.#transaction(() => {
          if (finished.length > 0) {
            const ids = JSON.stringify(finished);
            if (mode === "retain") this.#keep.run(ids);
            this.#remove.run(ids);
          }
          const got = this.#claim.all(batch) as { id: number; payload: string }[];
          for (const r of got) running.run(r.id, r.payload, Date.now() + lease);
          if (got.length > 0 || !recover) return got;
          return this.#expired.all(Date.now() + lease, Date.now(), batch) as {
            id: number;
            payload: string;
          }[];
        });
        finished = [];
      }
      if (rows.length === 0) {
        await this.#idle(recover ? 25 : 50);
        continue;
      }
      const renew = recover
        ? setInterval(
            () =>
              this.#db
                .prepare("UPDATE running SET locked_until = ? WHERE id = ?")
                .run(Date.now() + lease, rows[0]!.id),
            lease / 3,
          )
        : undefined;
      for (const row of rows) await handler(JSON.parse(row.payload));
      clearInterval(renew);
      finished = rows.map((r) => r.id);
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
    if (finished.length > 0) this.#transaction(() => this.#remove.run(JSON.stringify(finished)));
  }

  #idle(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        this.#wake = undefined;
        resolve();
      };
      const timer = setTimeout(done, ms);
      this.#wake = done;
    });
  }

  async unfinished(): Promise<number> {
    return (this.#left.get() as { c: number }).c;
  }

  async seedHistory(count: number): Promise<void> {
    this.#db.exec(`WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < ${count})
      INSERT INTO done SELECT i + 1000000000, '{"n":' || i || ',"t":0,"pad":"${"x".repeat(160)}"}', unixepoch() FROM s`);
    this.#db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  }

  async storeBytes(): Promise<number> {
    const pragma = (name: string): number =>
      Number(Object.values(this.#db.prepare(`PRAGMA ${name}`).get()!)[0]);
    return (pragma("page_count") - pragma("freelist_count")) * pragma("page_size");
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    this.#watcher?.close();
    this.#wake?.();
    await Promise.race([this.#loop, sleep(2000)]);
    this.#db.close();
  }
}

const recovery = {
  default: "30 s lease",
  measureDefault: false,
  tight: "1 s lease renewed every 333 ms, poll 25 ms",
};
const settings =
  "WAL; calls of one tick in one transaction, bulk by json_each; finish a batch of 500 and claim the next in one transaction; other process woken by inotify on the WAL";
export const entries: Entry[] = [
  {
    name: "sqlite-full",
    kind: "floor",
    store: "sqlite",
    durability: "synchronous=FULL: fsync on every commit",
    settings,
    create: (c) => new SqliteFloor(c, "FULL"),
    drainJobs: 120_000,
    embedded: true,
    keeps: true,
    recovery,
  },
  {
    name: "sqlite-normal",
    kind: "floor",
    store: "sqlite",
    durability: "synchronous=NORMAL: survives a process crash, not a power cut",
    settings,
    create: (c) => new SqliteFloor(c, "NORMAL"),
    drainJobs: 150_000,
    embedded: true,
    keeps: true,
    recovery,
  },
];
