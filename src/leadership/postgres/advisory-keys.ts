/** The numbers of our advisory locks. PostgreSQL separates such locks by database. */

import { createHash } from "node:crypto";
import { LEADER_ROLES, type LeaderRole } from "../../core/leadership/term.ts";

/** "BATON" in hex, with room for one byte. */
const LEADER_LOCK = 0x42_4154_4f4e_00n;

/** The last byte is the place of the role in the list of roles, from 1 on: ...01 is the scheduler's, as people see it in `pg_locks`. */
export const LEADER_LOCKS = Object.fromEntries(
  LEADER_ROLES.map((role, at) => [role, LEADER_LOCK + BigInt(at + 1)]),
) as Readonly<Record<LeaderRole, bigint>>;

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

/** The lock of one incarnation of a node, given as an SQL expression. The schema is part of it. */
export function incarnationLock(incarnation: string): string {
  return `hashtextextended('baton.node/' || ${incarnation}, 0)`;
}
