/** SQL for the lease of a run: shared by claims and accepts. */

import type { LeaseId } from "../../../../core/ids.ts";
import { read, write } from "../../../../platform/drivers/postgres/postgres.ts";
import { type StoreCache, NOW } from "../store-cache.ts";

/** A lease is extended by this part more than requested, so that most claims need not write its row. */
const LEASE_SURPLUS = 32;

/** The lease, as `open`: it exists and has not expired, or it holds nothing and the claimant may open it again. */
export const openLease = (opens: string): string => `
  open AS MATERIALIZED (
    SELECT e.id FROM baton.lease e
    WHERE e.name = $2 AND (e.expires_at > (SELECT now FROM clock)
      OR ${opens}::boolean AND NOT EXISTS (SELECT FROM baton.live l WHERE l.started_at IS NOT NULL AND l.lease = e.id))
  )`;

export const prolongLease = (only?: string): string => `
  prolonged AS (
    UPDATE baton.lease e SET expires_at = (SELECT now FROM clock) + $3::bigint + $3::bigint / ${LEASE_SURPLUS} FROM open
    WHERE e.id = open.id AND e.expires_at < (SELECT now FROM clock) + $3::bigint${only ? ` AND ${only}` : ""}
  )`;
export const PROLONG_LEASE = prolongLease();

/** The change that a claim makes to a job, for the parameters of worker and author. */
export const startRun = (worker: string, author: string): string => `
  lease = held.id, job_epoch = l.job_epoch + 1, attempts = l.attempts + 1,
  updated_at = (SELECT now FROM clock), started_at = (SELECT now FROM clock), worker = ${worker}, author = ${author},
  progress = NULL, progress_message = NULL`;

const MAKE = write(
  "claim-open-lease",
  `INSERT INTO baton.lease (name, expires_at) VALUES ($2, ${NOW} + $3::bigint) ON CONFLICT DO NOTHING RETURNING id`,
);

const IS_OPEN = read(
  "claim-lease-is-open",
  `SELECT FROM baton.lease WHERE name = $2 AND expires_at > ${NOW}`,
);

/** True if it is open now, also if another call of its holder opened it. Otherwise it has expired with jobs and stays lost. */
export async function makeLease(
  cache: StoreCache,
  { lease, leaseMs }: { readonly lease: LeaseId; readonly leaseMs: number },
): Promise<boolean> {
  const made = await cache.db.query(MAKE, [cache.now(), lease, leaseMs]);
  if (made.length === 1) return true;
  return (await cache.db.query(IS_OPEN, [cache.now(), lease])).length === 1;
}
