/** A store on a database of its own, and other people's sessions on the same database, all gone with the test. */

import assert from "node:assert/strict";
import { after, before, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "pg";
import { systemClock } from "../../src/platform/clock.ts";
import { openPostgresStore, type PostgresStore } from "../../src/store/postgres/store.ts";
import type { ClaimedJob } from "../../src/store/store.ts";
import { claimRequest } from "./job-builders.ts";
import { atEnd } from "./node-cleanup.ts";
import { PostgresServer, type SharedPostgres } from "./postgres-server.ts";
import { AUTHOR, lease, LEASE_MS, NODE } from "./store-world.ts";

/** Known to the cluster, with the options of a task that has none. */
const TASKS = [
  "mail",
  "other",
  "later",
  "receipt",
  "work",
  "fine",
  "a",
  "a.b_c:d/e-9",
  "x".repeat(128),
].concat(["brand-new", "first-COMMIT", "first-ROLLBACK"]);

/** To be called at the top of a test file: one server for all of its tests. */
export function submitWorlds(): (t: TestContext, schema?: string) => Promise<SubmitWorld> {
  let server: SharedPostgres;
  before(async () => {
    server = await PostgresServer.shared();
  });
  after(() => server?.stop());
  return (t, schema) => SubmitWorld.open(t, server, schema);
}

export class SubmitWorld {
  readonly server: SharedPostgres;
  readonly url: string;
  readonly store: PostgresStore;
  readonly schema: string;
  readonly #t: TestContext;

  private constructor(t: TestContext, made: Pick<SubmitWorld, "server" | "url" | "schema" | "store">) {
    this.#t = t;
    this.server = made.server;
    this.url = made.url;
    this.schema = made.schema;
    this.store = made.store;
  }

  static async open(t: TestContext, server: SharedPostgres, schema = "baton"): Promise<SubmitWorld> {
    const url = await server.createDatabase();
    atEnd(t, () => server.giveBack(url));
    const store = await openPostgresStore({ url, clock: systemClock, schema });
    atEnd(t, () => store.close());
    const as = { queue: "default", priority: 0, maxAttempts: 3, timeoutMs: 3_600_000 };
    await store.noteTasks!(TASKS.map((task) => ({ task, ...as })));
    return new SubmitWorld(t, { server, url, schema, store });
  }

  /** Somebody else's connection. What it has open when the test ends is rolled back by its end. */
  async session(user = "postgres"): Promise<Client> {
    const url = new URL(this.url);
    url.username = user;
    const session = new Client({ connectionString: url.href });
    session.on("error", () => {});
    await session.connect();
    atEnd(this.#t, () => session.end());
    return session;
  }

  /** Until so many sessions of this database wait for a lock. */
  async waiting(count = 1): Promise<void> {
    for (let tries = 0; tries < 500; tries++) {
      const waiting = await this.server.query(
        "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()",
        this.url,
      );
      if (waiting.length === count) return;
      await sleep(10);
    }
    assert.fail(`there are not ${count} that wait for a lock`);
  }

  async count(table = "live"): Promise<number> {
    const [row] = await this.server.query(`SELECT count(*)::int AS n FROM ${this.schema}.${table}`, this.url);
    return row!["n"] as number;
  }

  async claim(...tasks: string[]): Promise<readonly ClaimedJob[]> {
    const named = { author: AUTHOR, worker: NODE, lease: lease("node-a/1/1"), leaseMs: LEASE_MS };
    const request = claimRequest({ ...named, limit: 2_000, tasks: new Set(tasks), suspect: false });
    return (await this.store.jobs.claim(request)).jobs;
  }
}
