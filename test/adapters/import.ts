/**
 * `npm run test:import`: `baton import` from the real BullMQ and pg-boss. `npm test` has the same with what they have written
 * (test/node/cli/import.test.ts), and needs neither.
 */

import { importSuite } from "../support/import-suite.ts";
import { PostgresServer } from "../support/postgres-server.ts";
import { recordPostgres, recordRedis } from "../support/recorded-systems.ts";
import { RedisServer } from "../support/redis-server.ts";
import { fillBullmq, fillPgBoss } from "./old-systems.ts";

for (const library of ["bullmq", "bullmq-5"]) {
  importSuite(library, "bullmq", async () => {
    const server = await RedisServer.start();
    await fillBullmq(library, server.url());
    const contents = async () => JSON.stringify(await recordRedis(server));
    return { url: server.url(), now: Date.now(), contents, close: () => server.stop() };
  });
}

importSuite("pg-boss", "pg-boss", async () => {
  const server = await PostgresServer.shared();
  const url = await server.createDatabase();
  await fillPgBoss(url);
  const contents = async () =>
    JSON.stringify(await recordPostgres((sql) => server.query(sql, url), "pgboss"));
  return { url, now: Date.now(), contents, close: () => server.stop() };
});
