/** `node test/adapters/record-import.ts`: writes what the real BullMQ and pg-boss have in their keys and tables to the fixtures of `npm test`. */

import { writeFileSync } from "node:fs";
import { PostgresServer } from "../support/postgres-server.ts";
import { recordPostgres, recordRedis } from "../support/recorded-systems.ts";
import { RedisServer } from "../support/redis-server.ts";
import { fillBullmq, fillPgBoss } from "./old-systems.ts";

function write(file: string, lines: readonly unknown[]): void {
  const text = lines.map((line) => JSON.stringify(line)).join(",\n");
  writeFileSync(new URL(`../node/cli/${file}`, import.meta.url), `[\n${text}\n]\n`);
}

const redis = await RedisServer.start();
try {
  await fillBullmq("bullmq", redis.url());
  write("bullmq-6.7.0.json", await recordRedis(redis));
} finally {
  await redis.stop();
}

const postgres = await PostgresServer.start();
try {
  const url = await postgres.createDatabase();
  await fillPgBoss(url);
  write("pg-boss-12.38.0.json", await recordPostgres((sql) => postgres.query(sql, url), "pgboss"));
} finally {
  await postgres.stop();
}
