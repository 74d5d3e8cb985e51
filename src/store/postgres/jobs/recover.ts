/**
 * Leases in PostgreSQL: workers and agents renew them, and jobs are recovered when their lease ends or their run is
 * long past its timeout. A recovered job returns to its queue unless its budget is used up or it was to be cancelled.
 */

import { AGENT_LEASES } from "../../../core/agent.ts";
import type { JobId, LeaseId } from "../../../core/ids.ts";
import type { Budgets } from "../../../core/jobs/job.ts";
import {
  afterLoss,
  type Dead,
  type Loss,
  type Recovered,
  recoveredJob,
  wasInterrupted,
} from "../../../core/jobs/run-end.ts";
import type { Term } from "../../../core/leadership/term.ts";
import {
  type Postgres,
  type Queryable,
  read,
  type Statement,
  write,
} from "../../../platform/drivers/postgres/postgres.ts";
import { int4s, int8s, texts } from "../../../platform/drivers/postgres/arrays.ts";
import type { Author, JobStore, Renewal } from "../../store.ts";
import { type JobRow, LOST_COLUMNS, lostRun } from "../../job-row.ts";
import { takeApart } from "./ranges.ts";
import { type Applied, applyChanges } from "./run-endings.ts";
import { type StoreCache, NOW } from "./store-cache.ts";
import type { PostgresScripts } from "../scripts.ts";
import { holdTerm } from "../../terms.ts";
import { scanTable } from "./table-scan.ts";

/** The part of a lease that its renewal may take. With more, one broken connection leaves no time for a second try. */
const RENEWAL_SHARE = 1 / 4;
/** A quarter of a very short lease, as in tests, is too short for a busy machine. */
const RENEWAL_MS_MIN = 500;

const RENEW = write(
  "lease-renew",
  `UPDATE baton.lease SET expires_at = ${NOW} + $3::bigint WHERE name = $2 AND expires_at > ${NOW} RETURNING id`,
);
const UNWANTED = read(
  "lease-unwanted",
  `SELECT b.name || '-' || j.id AS id, l.job_epoch AS "jobEpoch", l.cancel_reason AS reason
   FROM baton.live l JOIN baton.job j ON j.id = l.id JOIN baton.name b ON b.id = j.birthplace
   WHERE l.cancel_requested AND l.started_at IS NOT NULL AND l.lease = $1 ORDER BY l.seq`,
);

/** Waits for claims that have locked the lease (FOR KEY SHARE), and skips a lease that they have extended. */
const END_EXPIRED = write(
  "lease-end-expired",
  `DELETE FROM baton.lease WHERE expires_at <= ${NOW} RETURNING id, name`,
);
/** A lease is named `<node>/<incarnation>`, with a suffix after another slash for a claimant with several leases. */
const END_OF_LIVES = write(
  "lease-end-of-incarnations",
  "DELETE FROM baton.lease WHERE split_part(name, '/', 2) = ANY ($1::text[]) RETURNING id, name",
);
const END_OF_OTHERS = write(
  "lease-end-of-others",
  "DELETE FROM baton.lease WHERE split_part(name, '/', 2) <> $1 AND NOT starts_with(name, $2) RETURNING id, name",
);
const END_OF_HOLDERS = write(
  "lease-end-of-holders",
  `DELETE FROM baton.lease
   WHERE split_part(name, '/', 1) = ANY ($1::text[])
     OR split_part(name, '/', 1) || '/' || split_part(name, '/', 2) = ANY ($1::text[]) RETURNING id, name`,
);
const RUNNING_UNDER = read(
  "recover-running-under",
  "SELECT seq, n FROM baton.live WHERE started_at IS NOT NULL AND lease = ANY ($1::int[])",
);
const LONG_RUNNING = read(
  "recover-long-running",
  `WITH clock AS MATERIALIZED (SELECT ${NOW} AS now)
   SELECT l.seq, l.n FROM baton.live l
   CROSS JOIN LATERAL (SELECT timeout_ms FROM baton.job WHERE id = l.id OFFSET 0) AS j
   WHERE l.started_at <= (SELECT now FROM clock) - $2::bigint
     AND l.started_at + j.timeout_ms <= (SELECT now FROM clock) - $2::bigint`,
);

/** Checked again under a lock: a run may have ended, and another one started, since it was found. */
const lost = (name: string, which: string) =>
  write(
    name,
    `SELECT l.seq, l.lease, b.name || '-' || j.id AS id, w.name AS worker, a.node, a.owner_epoch AS "ownerEpoch", ${LOST_COLUMNS}
     FROM baton.live l JOIN baton.job j ON j.id = l.id JOIN baton.name b ON b.id = j.birthplace
     JOIN baton.author a ON a.id = l.author LEFT JOIN baton.name w ON w.id = l.worker
     WHERE l.started_at IS NOT NULL AND l.n = 1 AND ${which} ORDER BY l.seq FOR UPDATE OF l`,
  );
const LOST = lost("recover-lost", "l.seq = ANY ($1::bigint[]) AND l.lease = ANY ($2::int[])");
const OVERDUE = lost(
  "recover-overdue",
  `l.seq = ANY ($3::bigint[]) AND l.started_at + j.timeout_ms <= ${NOW} - $2::bigint`,
);

interface FoundRow {
  readonly seq: number;
  readonly n: number;
}

/** With LOST_COLUMNS. */
interface Lost extends JobRow {
  readonly seq: number;
  readonly lease: number;
  readonly id: JobId;
  readonly worker: string | null;
  readonly node: Author["node"];
  readonly ownerEpoch: number;
}

export function jobRecovery(
  cache: StoreCache,
  scripts: PostgresScripts,
  renewals: Pick<Postgres, "query" | "transaction">,
): Pick<JobStore, "renew" | "recover"> {
  /** The number of the lease; null if it is not held. */
  const prolonged = async (
    lease: LeaseId,
    ttlMs: number,
    deadlineMs: number,
    fence?: Term,
  ): Promise<number | null> => {
    const values = [cache.now(), lease, ttlMs];
    const rows = fence
      ? await renewals.transaction(async (tx) => {
          const [, renewed] = await Promise.all([
            scripts.run(tx, holdTerm(fence)),
            tx.query<{ id: number }>(RENEW, values),
          ]);
          return renewed;
        }, deadlineMs)
      : await renewals.query<{ id: number }>(RENEW, values, deadlineMs);
    return rows[0]?.id ?? null;
  };

  const putBack = async (
    tx: Queryable,
    jobs: readonly Lost[],
    howLost: (job: Lost) => Loss,
    budgets: Budgets,
    leaderEpoch: number,
  ): Promise<Recovered[]> => {
    const authors = new Map<string, number>();
    for (const { node, ownerEpoch } of jobs) {
      const key = `${node}/${ownerEpoch}`;
      if (authors.has(key)) continue;
      authors.set(key, await cache.authorIdWithin(tx, { node, ownerEpoch, leaderEpoch }));
    }
    const changes: Applied[] = [];
    const recovered = jobs.map((job): Recovered => {
      const run = lostRun(job, job.worker);
      const change = afterLoss(run, howLost(job), budgets);
      const author = authors.get(`${job.node}/${job.ownerEpoch}`)!;
      changes.push({ seq: job.seq, change, result: null, taken: true, author });
      return recoveredJob(job.id, run, change);
    });
    await applyChanges(tx, changes, cache.now());
    return recovered;
  };

  const recoverDead = (which: Dead, budgets: Budgets, fence: Term): Promise<readonly Recovered[]> =>
    scripts.transaction(async (tx) => {
      const ended = await tx.query<{ id: number; name: LeaseId }>(...ending(which, cache.now()));
      if (ended.length === 0) return [];
      const leases = int4s(ended.map(({ id }) => id));
      const spared = new Set(ended.filter(({ name }) => wasInterrupted(name, which)).map(({ id }) => id));
      const found = numbers(await scanTable<FoundRow>(tx, RUNNING_UNDER, [leases]));
      if (found.length === 0) return [];
      await takeApart(tx, found);
      const jobs = await tx.query<Lost>(LOST, [int8s(found), leases]);
      const how = (job: Lost): Loss => (spared.has(job.lease) ? "interrupted" : "crashed");
      return putBack(tx, jobs, how, budgets, fence.epoch);
    }, fence);

  /** The walk is outside the transaction, where it would delay the grant to the next leader. */
  const recoverOverdue = async (
    graceMs: number,
    budgets: Budgets,
    fence: Term,
  ): Promise<readonly Recovered[]> => {
    const now = cache.now();
    const rows = await cache.db.transaction((tx) => scanTable<FoundRow>(tx, LONG_RUNNING, [now, graceMs]));
    const found = numbers(rows);
    return scripts.transaction(async (tx) => {
      if (found.length === 0) return [];
      await takeApart(tx, found);
      const jobs = await tx.query<Lost>(OVERDUE, [now, graceMs, int8s(found)]);
      return putBack(tx, jobs, () => "overdue", budgets, fence.epoch);
    }, fence);
  };

  return {
    renew: async (lease, ttlMs, fence) => {
      const deadlineMs = Math.max(ttlMs * RENEWAL_SHARE, RENEWAL_MS_MIN);
      const held = await prolonged(lease, ttlMs, deadlineMs, fence);
      if (held === null) return { held: false, cancelled: [] };
      const cancelled = await renewals.query<Renewal["cancelled"][number]>(UNWANTED, [held], deadlineMs);
      return { held: true, cancelled };
    },
    recover: (which, budgets, fence) =>
      which.by === "overdue"
        ? recoverOverdue(which.graceMs, budgets, fence)
        : recoverDead(which, budgets, fence),
  };
}

function ending(which: Dead, now: number | null): [Statement, unknown[]] {
  switch (which.by) {
    case "expiry":
      return [END_EXPIRED, [now]];
    case "incarnations":
      return [END_OF_LIVES, [texts(which.incarnations)]];
    case "everybody":
      return [END_OF_OTHERS, [which.except, AGENT_LEASES]];
    case "holders":
      return [END_OF_HOLDERS, [texts(which.names)]];
  }
}

function numbers(rows: readonly FoundRow[]): number[] {
  return rows.flatMap(({ seq, n }) => Array.from({ length: n }, (_, place) => seq + place));
}
