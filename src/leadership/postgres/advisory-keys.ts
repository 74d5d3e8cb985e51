/** The numbers of our advisory locks. PostgreSQL separates such locks by database. */

import { createHash } from "node:crypto";
import type { LeaderRole } from "../../core/leadership/term.ts";

/** "BATON" in hex and one byte for the role, as people see them in `pg_locks`. */
export const LEADER_LOCKS: Readonly<Record<LeaderRole, bigint>> = {
  scheduler: 0x42_4154_4f4e_01n,
  metrics_aggregator: 0x42_4154_4f4e_02n,
  log_compactor: 0x42_4154_4f4e_03n,
};

const DEFAULT_SCHEMA = "baton";
const ROLE_BITS = 8n;

/** Two clusters in one database have different schemas, and so different locks. */
export function leaderLock(role: LeaderRole, schema: string): bigint {
  const key = LEADER_LOCKS[role];
  if (schema === DEFAULT_SCHEMA) return key;
  const hash = createHash("sha256").update(schema).digest().readBigUInt64BE();
  return BigInt.asIntN(64, key ^ (hash << ROLE_BITS));
}

/**
 * All advisory locks that are held in this database, as the numbers that they were asked for with.
 * `pg_locks` shows a number in two halves.
 */
export const HELD_LOCKS = `
  SELECT (classid::bigint << 32) | objid::bigint AS key, pid FROM pg_locks
  WHERE locktype = 'advisory' AND granted AND objsubid = 1
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;

/** The lock of one life of a node, whose incarnation is the given SQL expression. The schema is part of it. */
export function incarnationLock(incarnation: string): string {
  return `hashtextextended('baton.node/' || ${incarnation}, 0)`;
}
