/**
 * `npm run test:transactions`: jobs submitted in transactions of the libraries that programs use, each the real one. They
 * are 370 MB, so they are a package of their own and no part of `npm test`, where test/node/jobs/submit/submit-within.test.ts
 * and test/unit/library check the same without them.
 */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { Pool } from "pg";
import { z } from "zod";
import { defineTask } from "../../src/jobs/tasks/task.ts";
import type { BatonNode } from "../../src/node/baton-node.ts";
import type { AnyTransaction } from "../../src/library/transactions/transaction-client.ts";
import { within } from "../../src/library/transactions/within.ts";
import { suiteScope } from "../support/node-cleanup.ts";
import { nodeHere } from "../support/node-here.ts";
import { PostgresServer, type SharedPostgres } from "../support/postgres-server.ts";

interface Library {
  /** Runs the work in a transaction; what it throws rolls back. */
  inTransaction<T>(work: (transaction: AnyTransaction) => Promise<T>): Promise<T>;
  /** Objects that people mistake for a transaction. */
  readonly mistakes: readonly unknown[];
  close(): Promise<unknown>;
}

/** Not by a literal name: the types of the libraries are not there where the checkout is checked. */
const load = (name: string): Promise<any> => import(name);

const LIBRARIES: Readonly<Record<string, (url: string) => Promise<Library>>> = {
  async "node-postgres"(url) {
    const pool = new Pool({ connectionString: url });
    const idle = await pool.connect();
    return {
      async inTransaction(work) {
        const client = await pool.connect();
        try {
          await client.query("BEGIN");
          const answer = await work(client);
          await client.query("COMMIT");
          return answer;
        } catch (error) {
          await client.query("ROLLBACK");
          throw error;
        } finally {
          client.release();
        }
      },
      mistakes: [pool, idle],
      close: async () => {
        idle.release();
        await pool.end();
      },
    };
  },
  async "Drizzle on node-postgres"(url) {
    const { drizzle } = await load("drizzle-orm/node-postgres");
    const pool = new Pool({ connectionString: url });
    const db = drizzle(pool);
    return {
      inTransaction: (work) => db.transaction(work),
      mistakes: [db],
      close: () => pool.end(),
    };
  },
  async "Drizzle on postgres.js"(url) {
    const { drizzle } = await load("drizzle-orm/postgres-js");
    const { default: postgres } = await load("postgres");
    const sql = postgres(url, { onnotice: () => {} });
    const db = drizzle(sql);
    return { inTransaction: (work) => db.transaction(work), mistakes: [db], close: () => sql.end() };
  },
  async Kysely(url) {
    const { CamelCasePlugin, Kysely, PostgresDialect } = await load("kysely");
    const pool = new Pool({ connectionString: url });
    const db = new Kysely({ dialect: new PostgresDialect({ pool }), plugins: [new CamelCasePlugin()] });
    return {
      inTransaction: (work) => db.transaction().execute(work),
      mistakes: [db],
      close: () => db.destroy(),
    };
  },
  async Knex(url) {
    const { default: knex } = await load("knex");
    const db = knex({ client: "pg", connection: url });
    return {
      inTransaction: (work) => db.transaction(work),
      mistakes: [db],
      close: () => db.destroy(),
    };
  },
  async Prisma(url) {
    const { PrismaClient } = await load("@prisma/client");
    const { PrismaPg } = await load("@prisma/adapter-pg");
    const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: url }) });
    return {
      inTransaction: (work) => prisma.$transaction(work, { timeout: 60_000, maxWait: 60_000 }),
      mistakes: [prisma],
      close: () => prisma.$disconnect(),
    };
  },
  async "TypeORM's EntityManager"(url) {
    await load("reflect-metadata");
    const { DataSource } = await load("typeorm");
    const source = await new DataSource({ type: "postgres", url }).initialize();
    return {
      inTransaction: (work) => source.transaction(work),
      mistakes: [source, source.manager],
      close: () => source.destroy(),
    };
  },
  async "TypeORM's QueryRunner"(url) {
    const { DataSource } = await load("typeorm");
    const source = await new DataSource({ type: "postgres", url }).initialize();
    const idle = source.createQueryRunner();
    return {
      async inTransaction(work) {
        const runner = source.createQueryRunner();
        await runner.startTransaction();
        try {
          const answer = await work(runner);
          await runner.commitTransaction();
          return answer;
        } catch (error) {
          await runner.rollbackTransaction();
          throw error;
        } finally {
          await runner.release();
        }
      },
      mistakes: [idle],
      close: async () => {
        await idle.release();
        await source.destroy();
      },
    };
  },
};

const charge = defineTask({
  name: "charge",
  schema: z.object({ order: z.int() }),
  queue: "payments",
  priority: 5,
  retry: { attempts: 8 },
  timeout: "15s",
  run: () => {},
});

function makePrismaClient(): void {
  const cwd = fileURLToPath(new URL(".", import.meta.url));
  // The schema engine is for migrations only, and would be downloaded.
  const env = { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: process.execPath };
  const made = spawnSync(process.execPath, ["node_modules/prisma/build/index.js", "generate"], {
    cwd,
    env,
    encoding: "utf8",
  });
  assert.equal(made.status, 0, `${made.stdout}${made.stderr}`);
}

describe("a job submitted in a transaction", () => {
  const scope = suiteScope();
  let server: SharedPostgres;
  let url: string;
  let node: BatonNode;
  before(async () => {
    makePrismaClient();
    server = await PostgresServer.shared();
    url = await server.createDatabase();
    const settings = { STORE: url, WORKER__CONCURRENCY: "0" };
    node = await nodeHere(scope, { settings, tasks: [charge] });
  });
  after(() => server?.stop());

  for (const [name, open] of Object.entries(LIBRARIES)) {
    it(`of ${name} is stored with its commit, with the options of its task`, async () => {
      const library = await open(url);
      try {
        const { jobs } = node.services;
        const submitted = await library.inTransaction(async (transaction) => {
          const job = await within(node, transaction).submit(charge, { order: 7 }, { idempotencyKey: name });
          assert.equal(await jobs.get(job.id), null, "nobody sees it before the commit");
          const again = await within(node, transaction).submit(
            charge,
            { order: 7 },
            { idempotencyKey: name },
          );
          assert.deepEqual([again.id, again.existed], [job.id, true]);
          return job;
        });
        assert.equal(submitted.existed, false);
        const job = (await jobs.get(submitted.id))!;
        assert.deepEqual([job.queue, job.priority, job.maxAttempts], ["payments", 5, 8]);
        assert.deepEqual([job.timeoutMs, job.payload], [15_000, '{"order":7}']);

        let left: string | undefined;
        const rolledBack = library.inTransaction(async (transaction) => {
          left = (await within(node, transaction).submit(charge, { order: 8 })).id;
          throw new Error("roll back");
        });
        await assert.rejects(rolledBack, /roll back/);
        assert.equal(await jobs.get(left as never), null);

        const unfit = (transaction: AnyTransaction) =>
          within(node, transaction).submit(charge, { order: "seven" } as never);
        await assert.rejects(library.inTransaction(unfit), { code: "BAD_PAYLOAD" });

        const conflicting = (transaction: AnyTransaction) =>
          within(node, transaction).submit(charge, { order: 9 }, { idempotencyKey: name });
        await assert.rejects(library.inTransaction(conflicting), {
          code: "IDEMPOTENCY_CONFLICT",
          details: { field: "idempotency_key", job_id: submitted.id },
        });

        const before = await jobs.list({ limit: 100 });
        for (const mistake of library.mistakes) {
          await assert.rejects(
            async () => within(node, mistake as AnyTransaction).submit(charge, { order: 1 }),
            {
              code: "BAD_REQUEST",
              details: { field: "client" },
              message: /^client (is|has no open)/,
            },
          );
        }
        assert.deepEqual(await jobs.list({ limit: 100 }), before);
      } finally {
        await library.close();
      }
    });
  }
});
