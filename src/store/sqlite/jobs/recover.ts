/**
 * Recovers jobs in SQLite whose lease has ended or whose run is long past its timeout. A recovered job returns to its
 * queue unless its budget is used up or it was to be cancelled. Runs inside the caller's transaction.
 */

import {
  crashError,
  interruptionError,
  isSuspect,
  mayRetry,
  overdueError,
  type Budgets,
  type JobError,
  type Spent,
} from "../../../core/jobs/job.ts";
import type { JobId, LeaseId } from "../../../core/ids.ts";
import { type Dead, isLeftBehind, wasInterrupted } from "../../abandoned-leases.ts";
import type { Abandoned, Recovered } from "../../store.ts";
import type { StoreCache } from "./store-cache.ts";
import type { Settle } from "./settle.ts";

interface Lost extends Spent {
  readonly seq: number;
  readonly id: JobId;
  readonly worker: string;
  readonly killed: readonly string[];
  readonly timeoutMs: number | null;
  /** With the words of whoever asked; null when nobody did. */
  readonly cancel: { readonly reason: string | null } | null;
  /** The author of what is written now. */
  readonly author: number;
}

export class Recover {
  readonly #ledger: StoreCache;
  readonly #settle: Settle;
  readonly #sql;

  constructor(ledger: StoreCache, settle: Settle) {
    this.#ledger = ledger;
    this.#settle = settle;
    const { file } = ledger;
    this.#sql = {
      lost: file.prepare(
        `SELECT j.id, l.worker, l.author, l.killed, l.failures, l.interruptions, l.crashes, l.cancel_requested, l.cancel_reason,
           j.max_attempts, j.timeout_ms
         FROM live l JOIN job j ON j.seq = l.seq WHERE l.seq = ?`,
      ),
      crash: file.prepare(
        `UPDATE live SET status = 1, job_epoch = job_epoch + 1, crashes = crashes + 1, suspect = ?5, updated_at = ?1, started_at = NULL, worker = NULL, lease = NULL,
         killed = ?2, author = ?3 WHERE seq = ?4`,
      ),
      takeAway: file.prepare(
        "UPDATE live SET job_epoch = job_epoch + 1, failures = failures + ?, interruptions = interruptions + ?, lease = NULL, author = ? WHERE seq = ?",
      ),
    };
  }

  run(which: Abandoned, budgets: Budgets, leaderEpoch: number): Recovered[] {
    const now = this.#ledger.clock.now();
    return which.by === "overdue"
      ? this.#overdue(which.graceMs, leaderEpoch, now)
      : this.#dead(which, budgets, leaderEpoch, now);
  }

  #dead(which: Dead, budgets: Budgets, leaderEpoch: number, now: number): Recovered[] {
    const ledger = this.#ledger;
    const over = new Set<LeaseId>();
    for (const name of ledger.leaseNames()) if (isAbandoned(name, which, ledger)) over.add(name);
    const recovered: Recovered[] = [];
    for (const [seq, run] of ledger.running) {
      const ended = over.has(run.lease);
      if (!ended && ledger.leaseId(run.lease) !== null) continue;
      const job = this.#lost(seq, leaderEpoch);
      const interrupted = ended && wasInterrupted(run.lease, which);
      recovered.push(interrupted ? this.#interrupted(job, budgets, now) : this.#crashed(job, budgets, now));
    }
    for (const name of over) ledger.dropLease(name);
    return recovered;
  }

  #overdue(graceMs: number, leaderEpoch: number, now: number): Recovered[] {
    const recovered: Recovered[] = [];
    for (const [seq, run] of this.#ledger.running) {
      if (run.endsBy + graceMs <= now) recovered.push(this.#tookTooLong(this.#lost(seq, leaderEpoch), now));
    }
    return recovered;
  }

  #crashed(job: Lost, budgets: Budgets, now: number): Recovered {
    const { seq, id, worker, failures, interruptions } = job;
    const killed = [...job.killed, worker];
    const crashes = job.crashes + 1;
    const end = endOf(job, "cancelled while its node died", () => crashError(job, budgets, killed));
    if (!end) this.#settle.keepRun(seq, "crashed", null, now);
    this.#sql.crash.run(now, JSON.stringify(killed), job.author, seq, isSuspect(crashes, budgets) ? 1 : 0);
    if (end) this.#settle.end(seq, end.status, end.error, now);
    else this.#settle.forget(seq, "queued");
    return { id, worker, status: end?.status ?? "queued", failures, interruptions, crashes };
  }

  /** A higher epoch at once: whoever has it by mistake may still speak. */
  #interrupted(job: Lost, budgets: Budgets, now: number): Recovered {
    const { seq, id, worker, failures, crashes } = job;
    const interruptions = job.interruptions + 1;
    const end = endOf(job, "cancelled", () => interruptionError(job, budgets));
    if (!end) this.#settle.keepRun(seq, "interrupted", null, now);
    this.#sql.takeAway.run(0, 1, job.author, seq);
    if (end) this.#settle.end(seq, end.status, end.error, now);
    else this.#settle.requeue(seq, now, {});
    return { id, worker, status: end?.status ?? "queued", failures, interruptions, crashes };
  }

  /** As a failure, and not as a crash: its worker lives. A higher epoch at once, for the run goes on. */
  #tookTooLong(job: Lost, now: number): Recovered {
    const { seq, id, worker, interruptions, crashes } = job;
    const error = overdueError(job.timeoutMs!, worker);
    const end = endOf(job, "cancelled", () => (mayRetry(job) ? null : error));
    if (!end) this.#settle.keepRun(seq, "overdue", error, now);
    this.#sql.takeAway.run(1, 0, job.author, seq);
    if (end) this.#settle.end(seq, end.status, end.error, now);
    else this.#settle.requeue(seq, now, { delayMs: 0, error });
    const status = end?.status ?? "queued";
    return { id, worker, status, failures: job.failures + 1, interruptions, crashes };
  }

  #lost(seq: number, leaderEpoch: number): Lost {
    const ledger = this.#ledger;
    const row = this.#sql.lost.get(seq)!;
    return {
      seq,
      id: row["id"] as JobId,
      worker: ledger.workerName(row["worker"] as number | null) ?? "unknown",
      killed: JSON.parse((row["killed"] as string | null) ?? "[]") as string[],
      timeoutMs: row["timeout_ms"] as number | null,
      cancel: row["cancel_requested"] ? { reason: row["cancel_reason"] as string | null } : null,
      author: ledger.authorId({ ...ledger.author(row["author"] as number), leaderEpoch }),
      failures: row["failures"] as number,
      interruptions: row["interruptions"] as number,
      crashes: row["crashes"] as number,
      maxAttempts: row["max_attempts"] as number,
    };
  }
}

/** Null when the job runs again. One that was to be cancelled does not. */
function endOf(
  { cancel }: Lost,
  words: string,
  failure: () => JobError | null,
): { status: "failed" | "cancelled"; error: JobError } | null {
  if (cancel) return { status: "cancelled", error: { code: "CANCELLED", message: cancel.reason ?? words } };
  const error = failure();
  return error && { status: "failed", error };
}

function isAbandoned(name: LeaseId, which: Dead, ledger: StoreCache): boolean {
  return which.by === "expiry" ? ledger.leaseExpired(name) : isLeftBehind(name, which);
}
