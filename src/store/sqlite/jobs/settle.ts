/**
 * Ends runs in SQLite, and stores their logs and progress. A write is refused unless the run still holds its job. Runs
 * inside the caller's transaction.
 */

import type { JobError, JobStatus } from "../../../core/jobs/job.ts";
import { PAST_RUNS_MAX, type PastOutcome } from "../../past-runs.ts";
import { LOG_LINES_MAX } from "../../store.ts";
import type { NewLogLine, Outcome, Report, Run, Settlement, Verdict } from "../../store.ts";
import type { StoreCache } from "./store-cache.ts";
import { DONE_COLUMNS, STATUS } from "../schema.ts";

const KEPT =
  "attempts, failures, interruptions, crashes, started_at, worker, lease, author, logs, progress, progress_message, cancel_requested";

/** An epoch is raised once or twice for each run: so far back there are more of them than are told. */
const EPOCHS_KEPT = 3 * PAST_RUNS_MAX;

export class Settle {
  readonly #ledger: StoreCache;
  readonly #sql;

  constructor(ledger: StoreCache) {
    this.#ledger = ledger;
    const { file } = ledger;
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
      spend: file.prepare(
        "UPDATE live SET failures = failures + ?, interruptions = interruptions + ? WHERE seq = ?",
      ),
      requeue: file.prepare(
        `UPDATE live SET status = ?1, run_at = coalesce(?2, run_at), updated_at = ?3, started_at = NULL, worker = NULL,
         attempts = attempts - ?4, failures = failures + ?5, interruptions = interruptions + ?6,
         error = coalesce(?7, error) WHERE seq = ?8`,
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
        `SELECT coalesce(d.job_epoch, l.job_epoch) AS epoch, coalesce(d.lease, l.lease) AS lease, l.status AS live_status
         FROM job j LEFT JOIN live l ON l.seq = j.seq LEFT JOIN done d ON d.seq = j.seq WHERE j.seq = ?`,
      ),
    };
  }

  /** Under a leader's epoch, which was compared, if it is given. */
  run(settlements: readonly Settlement[], leaderEpoch?: number): Verdict[] {
    const now = this.#ledger.clock.now();
    const done = new Completions();
    const verdicts = settlements.map(({ run, outcome }): Verdict => {
      const seq = this.#holder(run);
      if (seq === null) {
        this.#complete(done, now); // what this batch did so far decides what a repeat in it is
        return this.#refusal(run);
      }
      if (leaderEpoch !== undefined) this.#noteEpoch(seq, leaderEpoch);
      if (outcome.kind === "completed") {
        this.forget(seq, "completed");
        done.add(seq, outcome.result);
      } else this.#apply(seq, outcome, now);
      return "accepted";
    });
    this.#complete(done, now);
    return verdicts;
  }

  report(reports: readonly Report[], leaderEpoch?: number): Verdict[] {
    const now = this.#ledger.clock.now();
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

  /** The job's number if this run is the one that holds it. */
  #holder(run: Run): number | null {
    const seq = (run.ref as number | undefined) ?? this.#ledger.seqOf(run.id);
    if (seq === null) return null;
    const holder = this.#ledger.running.get(seq);
    return holder && holder.jobEpoch === run.jobEpoch && holder.lease === run.lease ? seq : null;
  }

  /** Most often it is the epoch that the job was claimed under, and there is nothing to write. */
  #noteEpoch(seq: number, leaderEpoch: number): void {
    const ledger = this.#ledger;
    const author = ledger.author(this.#sql.author.get(seq)!["author"] as number);
    if (author.leaderEpoch === leaderEpoch) return;
    this.#sql.setAuthor.run(ledger.authorId({ ...author, leaderEpoch }), seq);
  }

  #refusal(run: Run): Verdict {
    const seq = this.#ledger.seqOf(run.id);
    const row = seq === null ? undefined : this.#sql.settled.get(seq);
    if (!row) return "missing";
    // An epoch names one run, so an equal one that runs no more was settled before. A lease that is still known must fit too.
    const over =
      row["live_status"] !== STATUS.processing && run.jobEpoch > 0 && row["epoch"] === run.jobEpoch;
    const lease = this.#ledger.leaseName(row["lease"] as number | null);
    return over && (lease === null || lease === run.lease) ? "replayed" : "stale";
  }

  #apply(seq: number, outcome: Exclude<Outcome, { kind: "completed" }>, now: number): void {
    const reason = this.#ledger.cancelWishes.get(seq);
    if (reason !== undefined && outcome.kind !== "cancelled" && outcome.kind !== "failed") {
      // It would go back to the queue, where it would have been cancelled at once.
      return this.end(seq, "cancelled", { code: "CANCELLED", message: reason ?? "cancelled" }, now);
    }
    switch (outcome.kind) {
      case "retry":
        this.keepRun(seq, "failed", outcome.error, now);
        return this.requeue(seq, now, { delayMs: outcome.delayMs, failure: 1, error: outcome.error });
      case "interrupted":
        this.keepRun(seq, "interrupted", null, now);
        return this.requeue(seq, now, { interruption: 1 });
      case "released":
        return this.requeue(seq, now, { unstarted: 1 });
      case "failed":
        this.#sql.spend.run(
          outcome.spends === "failure" ? 1 : 0,
          outcome.spends === "interruption" ? 1 : 0,
          seq,
        );
        return this.end(seq, "failed", outcome.error, now);
      case "cancelled":
        return this.end(seq, "cancelled", outcome.error, now);
    }
  }

  /** Of a run that is over and whose job goes on, before anything is changed. */
  keepRun(seq: number, outcome: PastOutcome, error: JobError | null, now: number): void {
    this.#sql.keepRun.run(now, outcome, error && JSON.stringify(error), seq);
    this.#sql.forgetRuns.run(seq, EPOCHS_KEPT);
  }

  /** A run is over, and its job waits again. */
  requeue(
    seq: number,
    now: number,
    change: {
      delayMs?: number;
      failure?: number;
      interruption?: number;
      unstarted?: number;
      error?: JobError;
    },
  ): void {
    const status: JobStatus = (change.delayMs ?? 0) > 0 ? "scheduled" : "queued";
    const runAt = change.delayMs === undefined ? null : now + change.delayMs;
    const error = change.error ? JSON.stringify(change.error) : null;
    const { failure = 0, interruption = 0, unstarted = 0 } = change;
    this.#sql.requeue.run(STATUS[status], runAt, now, unstarted, failure, interruption, error, seq);
    this.forget(seq, status);
  }

  /** A run is over, and its job with it. */
  end(seq: number, status: "failed" | "cancelled", error: JobError, now: number): void {
    this.#sql.end.run(STATUS[status], now, JSON.stringify(error), seq);
    this.#sql.drop.run(seq);
    this.forget(seq, status);
  }

  #complete(done: Completions, now: number): void {
    if (done.size === 0) return;
    for (const [seq, result] of done.withResult) this.#sql.completeOne.run(now, result, seq);
    if (done.plain.length > 0) this.#sql.completeMany.run(now, JSON.stringify(done.plain));
    this.#sql.dropMany.run(JSON.stringify(done.all()));
    done.clear();
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
      const message = last
        ? `the limit of ${LOG_LINES_MAX} log lines is reached; later lines are dropped`
        : line.message;
      this.#sql.addLog.run(seq, n, line.at, level, message, run.jobEpoch);
    }
    return n - before;
  }

  /** The run is over: its job goes from processing to another status. */
  forget(seq: number, to: JobStatus): void {
    const ledger = this.#ledger;
    ledger.count(ledger.running.get(seq)!.queue, "processing", to);
    ledger.running.delete(seq);
    ledger.cancelWishes.delete(seq);
  }
}

class Completions {
  readonly plain: number[] = [];
  readonly withResult: [number, string][] = [];

  get size(): number {
    return this.plain.length + this.withResult.length;
  }

  add(seq: number, result: string): void {
    if (result === "null") this.plain.push(seq);
    else this.withResult.push([seq, result]);
  }

  all(): number[] {
    return this.withResult.length === 0
      ? this.plain
      : [...this.plain, ...this.withResult.map(([seq]) => seq)];
  }

  clear(): void {
    this.plain.length = 0;
    this.withResult.length = 0;
  }
}
