/**
 * Recovers jobs in SQLite whose lease has ended or whose run is long past its timeout. A recovered job returns to its
 * queue unless its budget is used up or it was to be cancelled. Runs inside the caller's transaction.
 */

import type { Budgets } from "../../../core/jobs/job.ts";
import {
  type Abandoned,
  afterLoss,
  type Dead,
  isLeftBehind,
  type Loss,
  type Recovered,
  recoveredJob,
  wasInterrupted,
} from "../../../core/jobs/run-end.ts";
import type { LeaseId } from "../../../core/ids.ts";
import { type JobRow, LOST_COLUMNS, lostRun } from "../../job-row.ts";
import type { StoreCache } from "./store-cache.ts";
import type { Settle } from "./settle.ts";

const LOST = `
  SELECT j.id, l.worker, l.author, ${LOST_COLUMNS} FROM live l JOIN job j ON j.seq = l.seq WHERE l.seq = ?`;

export function recovery(
  cache: StoreCache,
  settle: Settle,
): (which: Abandoned, budgets: Budgets, leaderEpoch: number) => Recovered[] {
  const statement = cache.file.prepare(LOST);
  return (which, budgets, leaderEpoch) => {
    const now = cache.clock.now();
    const lost = which.by === "overdue" ? overdue(cache, which.graceMs, now) : dead(cache, which);
    return lost.map(([seq, how]) => {
      const row: JobRow = statement.get(seq)!;
      const { id, author, worker } = row;
      const run = lostRun(row, cache.workerName(worker));
      const change = afterLoss(run, how, budgets);
      settle.apply(seq, change, now, cache.authorId({ ...cache.author(author), leaderEpoch }));
      return recoveredJob(id, run, change);
    });
  };
}

type LostJob = readonly [seq: number, how: Loss];

/** Ends the leases. */
function dead(cache: StoreCache, which: Dead): LostJob[] {
  const over = new Set<LeaseId>();
  for (const name of cache.leaseNames()) {
    if (which.by === "expiry" ? cache.leaseExpired(name) : isLeftBehind(name, which)) over.add(name);
  }
  const lost: LostJob[] = [];
  for (const [seq, { lease }] of cache.running) {
    const ended = over.has(lease);
    if (!ended && cache.leaseId(lease) !== null) continue;
    lost.push([seq, ended && wasInterrupted(lease, which) ? "interrupted" : "crashed"]);
  }
  for (const name of over) cache.dropLease(name);
  return lost;
}

function overdue({ running }: StoreCache, graceMs: number, now: number): LostJob[] {
  return [...running].filter(([, { endsBy }]) => endsBy + graceMs <= now).map(([seq]) => [seq, "overdue"]);
}
