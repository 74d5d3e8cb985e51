/**
 * Ends runs in SQLite, and stores their logs and progress. A write is refused unless the run still holds its job. Runs
 * inside the caller's transaction.
 */

import type { JobStatus } from "../../../core/jobs/job.ts";
import { afterOutcome, type RunChange } from "../../../core/jobs/run-end.ts";
import { LOG_LIMIT_REACHED, LOG_LINES_MAX, PAST_EPOCHS_KEPT } from "../../jobs.ts";
import type { NewLogLine, Report, Run, Settlement, Verdict } from "../../jobs.ts";
import type { StoreCache } from "./store-cache.ts";
import { DONE_COLUMNS } from "../schema.ts";
import { STATUS } from "../../job-row.ts";

const KEPT =
  "attempts, failures, interruptions, crashes, started_at, worker, lease, author, logs, progress, progress_message, cancel_requested";

/** Charges a change to the job. With an author, the run is taken from its claimant. */
const CHARGED = `attempts = attempts + ?1, failures = failures + ?2, interruptions = interruptions + ?3, crashes = crashes + ?4,
  suspect = coalesce(?5, suspect), killed = coalesce(?6, killed), author = coalesce(?7, author),
  job_epoch = job_epoch + (?7 IS NOT NULL), lease = CASE WHEN ?7 IS NULL THEN lease END`;

/** Runs of a batch that have completed and are not written yet. */
interface Completions {
  readonly plain: number[];
  readonly withResult: (readonly [seq: number, result: string])[];
}

export class Settle {
  readonly #cache: StoreCache;
  readonly #sql;

  constructor(cache: StoreCache) {
    this.#cache = cache;
    const { file } = cache;
    const finish = (result: string, where: string) =>
      file.prepare(
        `INSERT INTO done (${DONE_COLUMNS}, result) SELECT seq, 3, ?1, run_at, job_epoch, ${KEPT}, NULL, killed, ${result} FROM live WHERE ${where}`,
      );
    this.#sql = {
      completeMany: finish("'null'", "seq IN (SELECT value FROM json_each(?2))"),
      completeOne: finish("?2", "seq = ?3"),
      drop: file.prepare("DELETE FROM live WHERE seq = ?"),
      dropMany: file.prepare("DELETE FROM live WHERE seq IN (SELECT value FROM json_each(?))"),
      end: file.prepare(
        `INSERT INTO done (${DONE_COLUMNS}, result) SELECT seq, ?1, ?2, run_at, job_epoch, ${KEPT}, ?3, killed, NULL FROM live WHERE seq = ?4`,
      ),
      charge: file.prepare(`UPDATE live SET ${CHARGED} WHERE seq = ?8`),
      requeue: file.prepare(
        `UPDATE live SET ${CHARGED}, status = ?9, run_at = coalesce(?10, run_at), updated_at = ?11, started_at = NULL, worker = NULL,
         error = coalesce(?12, error) WHERE seq = ?8`,
      ),
      keepRun: file.prepare(
        `INSERT OR IGNORE INTO past_run SELECT seq, job_epoch, started_at, ?1, worker, author, ?2, ?3 FROM live
         WHERE seq = ?4 AND started_at IS NOT NULL`,
      ),
      forgetRuns: file.prepare(
        "DELETE FROM past_run WHERE seq = ?1 AND job_epoch < (SELECT max(job_epoch) FROM past_run WHERE seq = ?1) - ?2",
      ),
      touch: file.prepare(
        "UPDATE live SET logs = logs + ?1, progress = coalesce(?2, progress), progress_message = CASE WHEN ?2 IS NULL THEN progress_message ELSE ?3 END, updated_at = ?4 WHERE seq = ?5",
      ),
      author: file.prepare("SELECT author FROM live WHERE seq = ?"),
      setAuthor: file.prepare("UPDATE live SET author = ? WHERE seq = ?"),
      logCount: file.prepare("SELECT logs FROM live WHERE seq = ?"),
      addLog: file.prepare("INSERT INTO log VALUES (?, ?, ?, ?, ?, ?)"),
      settled: file.prepare(
        `SELECT coalesce(d.job_epoch, l.job_epoch) AS epoch, e.name AS lease, l.status AS live_status
         FROM job j LEFT JOIN live l ON l.seq = j.seq LEFT JOIN done d ON d.seq = j.seq
         LEFT JOIN lease e ON e.id = coalesce(d.lease, l.lease) WHERE j.seq = ?`,
      ),
    };
  }

  /** With a leader's epoch, the caller has checked its term. */
  run(settlements: readonly Settlement[], leaderEpoch?: number): Verdict[] {
    const now = this.#cache.clock.now();
    const done: Completions = { plain: [], withResult: [] };
    const verdicts = settlements.map(({ run, outcome }): Verdict => {
      const seq = this.#holder(run);
      if (seq === null) {
        this.#complete(done, now); // a repeat in the same batch depends on what was written so far
        return this.#refusal(run);
      }
      if (leaderEpoch !== undefined) this.#noteEpoch(seq, leaderEpoch);
      if (outcome.kind === "completed") {
        this.forget(seq, "completed");
        if (outcome.result === "null") done.plain.push(seq);
        else done.withResult.push([seq, outcome.result]);
      } else {
        const reason = this.#cache.cancelRequests.get(seq);
        this.apply(seq, afterOutcome(outcome, reason === undefined ? null : { reason }), now);
      }
      return "accepted";
    });
    this.#complete(done, now);
    return verdicts;
  }

  report(reports: readonly Report[], leaderEpoch?: number): Verdict[] {
    const now = this.#cache.clock.now();
    return reports.map(({ run, logs, progress }): Verdict => {
      const seq = this.#holder(run);
      if (seq === null) {
        const refusal = this.#refusal(run);
        return refusal === "replayed" ? "stale" : refusal;
      }
      if (leaderEpoch !== undefined) this.#noteEpoch(seq, leaderEpoch);
      const added = this.#addLogs(seq, run, logs);
      this.#sql.touch.run(added, progress?.value ?? null, progress?.message ?? null, now, seq);
      return "accepted";
    });
  }

  /** The number of the job, if this run holds it. */
  #holder(run: Run): number | null {
    const seq = (run.ref as number | undefined) ?? this.#cache.seqOf(run.id);
    if (seq === null) return null;
    const holder = this.#cache.running.get(seq);
    return holder && holder.jobEpoch === run.jobEpoch && holder.lease === run.lease ? seq : null;
  }

  /** Usually the epoch of the claim, so that nothing is written. */
  #noteEpoch(seq: number, leaderEpoch: number): void {
    const cache = this.#cache;
    const author = cache.author(this.#sql.author.get(seq)!["author"] as number);
    if (author.leaderEpoch === leaderEpoch) return;
    this.#sql.setAuthor.run(cache.authorId({ ...author, leaderEpoch }), seq);
  }

  #refusal(run: Run): Verdict {
    const seq = this.#cache.seqOf(run.id);
    const row = seq === null ? undefined : this.#sql.settled.get(seq);
    if (!row) return "missing";
    // An epoch identifies one run: with an equal epoch, one that no longer runs was settled before. A known lease must
    // match too.
    const over =
      row["live_status"] !== STATUS.processing && run.jobEpoch > 0 && row["epoch"] === run.jobEpoch;
    return over && (row["lease"] === null || row["lease"] === run.lease) ? "replayed" : "stale";
  }

  /** With an author, the run is taken from its claimant. */
  apply(seq: number, change: RunChange, now: number, author: number | null = null): void {
    const { end, spent, delayMs, suspect, killed } = change;
    const charges = [
      spent.attempts,
      spent.failures,
      spent.interruptions,
      spent.crashes,
      suspect === null ? null : Number(suspect),
      killed && JSON.stringify(killed),
      author,
      seq,
    ] as const;
    const error = change.error && JSON.stringify(change.error);
    if (end) {
      this.#sql.charge.run(...charges);
      this.#sql.end.run(STATUS[end.status], now, end.error && JSON.stringify(end.error), seq);
      this.#sql.drop.run(seq);
    } else {
      // Before anything is changed.
      if (change.past) {
        this.#sql.keepRun.run(now, change.past, error, seq);
        this.#sql.forgetRuns.run(seq, PAST_EPOCHS_KEPT);
      }
      const runAt = delayMs === null ? null : now + delayMs;
      this.#sql.requeue.run(...charges, STATUS[back(delayMs)], runAt, now, error);
    }
    this.forget(seq, end?.status ?? back(delayMs));
  }

  #complete({ plain, withResult }: Completions, now: number): void {
    for (const [seq, result] of withResult) this.#sql.completeOne.run(now, result, seq);
    if (plain.length > 0) this.#sql.completeMany.run(now, JSON.stringify(plain));
    const all = withResult.length === 0 ? plain : [...plain, ...withResult.map(([seq]) => seq)];
    if (all.length > 0) this.#sql.dropMany.run(JSON.stringify(all));
    plain.length = 0;
    withResult.length = 0;
  }

  #addLogs(seq: number, run: Run, lines: readonly NewLogLine[]): number {
    if (lines.length === 0) return 0;
    const before = this.#sql.logCount.get(seq)!["logs"] as number;
    let n = before;
    for (const line of lines) {
      if (n >= LOG_LINES_MAX) break;
      n++;
      const last = n === LOG_LINES_MAX;
      const level = last ? "warn" : line.level;
      const message = last ? LOG_LIMIT_REACHED : line.message;
      this.#sql.addLog.run(seq, n, line.at, level, message, run.jobEpoch);
    }
    return n - before;
  }

  /** The run has ended: its job leaves the status processing. */
  forget(seq: number, to: JobStatus): void {
    const cache = this.#cache;
    cache.count(cache.running.get(seq)!.queue, "processing", to);
    cache.running.delete(seq);
    cache.cancelRequests.delete(seq);
  }
}

function back(delayMs: number | null): "scheduled" | "queued" {
  return (delayMs ?? 0) > 0 ? "scheduled" : "queued";
}
