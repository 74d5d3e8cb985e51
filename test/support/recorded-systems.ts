/** What another job system has written into Redis or PostgreSQL: read as commands, and written again. */

import type { RedisServer } from "./redis-server.ts";

type Query = (sql: string) => Promise<Record<string, unknown>[]>;

/** The commands that make all keys again; streams of events are of no use. */
export async function recordRedis(server: RedisServer): Promise<string[][]> {
  const all = await server.command<string[]>("KEYS", "*");
  // The lock of an active job ends by itself.
  const keys = all.filter((key) => !key.endsWith(":lock"));
  const commands = await Promise.all(
    keys.toSorted().map(async (key): Promise<string[]> => {
      const type = await server.command<string>("TYPE", key);
      if (type === "list")
        return ["RPUSH", key, ...(await server.command<string[]>("LRANGE", key, "0", "-1"))];
      if (type === "hash") {
        const fields = await server.command<Readonly<Record<string, string>>>("HGETALL", key);
        const { stacktrace: _, ...kept } = fields; // it has paths of this machine
        return [
          "HSET",
          key,
          ...Object.entries(kept)
            .sort(([a], [b]) => (a < b ? -1 : 1))
            .flat(),
        ];
      }
      if (type === "set") return ["SADD", key, ...(await server.command<string[]>("SMEMBERS", key))];
      if (type === "string") return ["SET", key, await server.command<string>("GET", key)];
      if (type !== "zset") return [];
      const members = await server.command<[string, number][]>("ZRANGE", key, "0", "-1", "WITHSCORES");
      const scored = members.flatMap(([member, score]) => [String(score), member]);
      return ["ZADD", key, ...scored];
    }),
  );
  return commands.filter((command) => command.length > 0);
}

const TABLES = ["version", "queue", "schedule", "job", "instance"];

/** Statements that make the tables that are read again, with their rows and without their keys. */
export async function recordPostgres(query: Query, schema: string): Promise<string[]> {
  const labels = await query(
    `SELECT string_agg(quote_literal(enumlabel), ', ' ORDER BY enumsortorder) AS list FROM pg_enum
      WHERE enumtypid = '${schema}.job_state'::regtype`,
  );
  const statements = [
    `CREATE SCHEMA ${schema}`,
    `CREATE TYPE ${schema}.job_state AS ENUM (${String(labels[0]!["list"])})`,
  ];
  for (const table of TABLES) {
    const name = `${schema}.${table}`;
    const [columns] = await query(
      `SELECT string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' ORDER BY attnum) AS list
         FROM pg_attribute WHERE attrelid = '${name}'::regclass AND attnum > 0 AND NOT attisdropped`,
    );
    statements.push(`CREATE TABLE ${name} (${String(columns!["list"])})`);
    // Whose programs had it open is nobody's business.
    if (table === "instance") continue;
    const rows = await query(`SELECT to_jsonb(t)::text AS row FROM ${name} t ORDER BY 1`);
    for (const { row } of rows) {
      const text = String(row).replaceAll("'", "''");
      statements.push(`INSERT INTO ${name} SELECT * FROM jsonb_populate_record(null::${name}, '${text}')`);
    }
  }
  return statements;
}
