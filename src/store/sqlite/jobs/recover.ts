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
  type LostRun,
  type Recovered,
  recoveredJob,
  wasInterrupted,
} from "../../../core/jobs/run-end.ts";
import type { JobId, LeaseId } from "../../../core/ids.ts";
import type { StoreCache } from "./store-cache.ts";
import type { Settle } from "./settle.ts";

export class Recover {
  readonly #cache: StoreCache;
  readonly #settle: Settle;
  readonly #lost;

  constructor(cache: StoreCache, settle: Settle) {
    this.#cache = cache;
    this.#settle = settle;
    this.#lost = cache.file.prepare(
      `SELECT j.id, l.worker, l.author, l.killed, l.failures, l.interruptions, l.crashes, l.cancel_requested, l.cancel_reason,
         j.max_attempts, j.timeout_ms
       FROM live l JOIN job j ON j.seq = l.seq WHERE l.seq = ?`,
    );
  }

  run(which: Abandoned, budgets: Budgets, leaderEpoch: number): Recovered[] {
    const now = this.#cache.clock.now();
    const lost: (readonly [seq: number, how: Loss])[] =
      which.by === "overdue" ? this.#overdue(which.graceMs, now) : this.#dead(which);
    return lost.map(([seq, how]) => this.#recover(seq, how, budgets, leaderEpoch, now));
  }

  /** Ends the leases. */
  #dead(which: Dead): [number, Loss][] {
    const cache = this.#cache;
    const over = new Set<LeaseId>();
    for (const name of cache.leaseNames()) {
      if (which.by === "expiry" ? cache.leaseExpired(name) : isLeftBehind(name, which)) over.add(name);
    }
    const lost: [number, Loss][] = [];
    for (const [seq, { lease }] of cache.running) {
      const ended = over.has(lease);
      if (!ended && cache.leaseId(lease) !== null) continue;
      lost.push([seq, ended && wasInterrupted(lease, which) ? "interrupted" : "crashed"]);
    }
    for (const name of over) cache.dropLease(name);
    return lost;
  }

  #overdue(graceMs: number, now: number): [number, Loss][] {
    const overdue = [...this.#cache.running].filter(([, { endsBy }]) => endsBy + graceMs <= now);
    return overdue.map(([seq]) => [seq, "overdue"]);
  }

  #recover(seq: number, how: Loss, budgets: Budgets, leaderEpoch: number, now: number): Recovered {
    const cache = this.#cache;
    const row = this.#lost.get(seq)!;
    const run: LostRun = {
      worker: cache.workerName(row["worker"] as number | null) ?? "unknown",
      killed: JSON.parse((row["killed"] as string | null) ?? "[]") as string[],
      timeoutMs: row["timeout_ms"] as number | null,
      cancel: row["cancel_requested"] ? { reason: row["cancel_reason"] as string | null } : null,
      failures: row["failures"] as number,
      interruptions: row["interruptions"] as number,
      crashes: row["crashes"] as number,
      maxAttempts: row["max_attempts"] as number,
    };
    const change = afterLoss(run, how, budgets);
    const author = cache.authorId({ ...cache.author(row["author"] as number), leaderEpoch });
    this.#settle.apply(seq, change, now, author);
    return recoveredJob(row["id"] as JobId, run, change);
  }
}
