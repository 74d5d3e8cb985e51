/** Writes the output of runs to the store, reports before outcomes, what arrives together at once. A failed write is repeated. */

import { hasCode } from "../../core/errors.ts";
import type { JobId } from "../../core/ids.ts";
import type { JobStatus } from "../../core/jobs/job.ts";
import { traceFields } from "../../core/trace.ts";
import { STORE_RETRY_MS, within } from "../../platform/loop.ts";
import type { Platform } from "../../platform/platform.ts";
import type { ClaimedJob, Outcome, Report, Run, RunBatch } from "../../store/store.ts";
import type { JobRun } from "./job-run.ts";
import type { ResultPort } from "./worker-ports.ts";
import type { SettledRun, WorkerMonitor } from "./worker-monitor.ts";

export interface ResultWriterOptions {
  readonly results: ResultPort;
  /** A write has been handed to the store: what is handed over now shares its commit. */
  readonly onSent: () => void;
  readonly onChange: (id: JobId, status: JobStatus | null, job?: ClaimedJob) => void;
  /** The store has been told how this run ended. */
  readonly onEnded?: (ended: SettledRun) => void;
  readonly watch: Pick<WorkerMonitor, "settling" | "results">;
}

/**
 * Logs and progress of a busy task are written this often, in one commit; a first line and all that comes with a result are written at once.
 * Shorter, and each turn of a chatty handler costs a commit; longer, and people who follow a log notice it.
 */
const REPORTS_MS = 100;
/** Writes under way at once: while the store commits one, it can work on the next. */
const WRITES_MAX = 3;
/** Outcomes for which it is worth to begin a write beside another. Fewer share the next one: each has a cost of its own. */
const LARGE_WRITE = 128;
/** How long a drain goes on trying to store results. Longer, and a stop with a full disk ends as a kill. */
const LAST_TRIES_MS = 2_000;

export class ResultWriter {
  readonly #o: Pick<Platform, "clock" | "log"> & ResultWriterOptions;
  #settlements: SettledRun[] = [];
  readonly #reporting = new Set<JobRun>();
  /** When reports were last written, by the monotonic clock. */
  #reportedAt = -Infinity;
  #reportsDue = false;
  #callOffReports: (() => void) | null = null;
  readonly #writes = new Map<Promise<void>, readonly SettledRun[]>();
  /** Those for whose end the next one waits, unless it is large. */
  #awaited = 0;
  /** Reports are not overtaken: the next ones may be of the same run. */
  #reportsAwaited = false;
  #scheduled = false;
  #failing = false;
  /** From then on results that the store does not take are let go. */
  #giveUpAt = Infinity;

  constructor({ clock, log }: Pick<Platform, "clock" | "log">, options: ResultWriterOptions) {
    this.#o = { clock, log, ...options };
  }

  /** The store refuses results at the moment: running more jobs would only pile them up. */
  get failing(): boolean {
    return this.#failing;
  }

  get busy(): boolean {
    return this.#writes.size > 0 || this.#unwritten();
  }

  /** Runs that have ended and whose results the store may not have taken yet. */
  unsettled(): Run[] {
    return [...this.#writes.values(), this.#settlements].flatMap((some) => some.map(({ run }) => run));
  }

  settle(run: ClaimedJob, outcome: Outcome, trace?: string, thrown?: unknown): void {
    const plain = trace === undefined && thrown === undefined;
    this.#settlements.push(plain ? { run, outcome } : { run, outcome, trace, thrown });
    this.#schedule();
  }

  report(run: JobRun): void {
    this.#reporting.add(run);
    if (this.#reportsDue || this.#callOffReports) return;
    const { clock } = this.#o;
    const due = (): void => {
      this.#reportsDue = true;
      this.#schedule();
    };
    const waitMs = this.#reportedAt + REPORTS_MS - clock.monotonic();
    if (waitMs <= 0) due();
    else this.#callOffReports = clock.after(waitMs, due);
  }

  forget(run: JobRun): void {
    this.#reporting.delete(run);
    this.#o.results.forget?.(run.claimed);
  }

  open(): void {
    this.#giveUpAt = Infinity;
  }

  /** Writes all there is, also what claims under way still give back. A store that is silent gets no more time than one that refuses. */
  async finish(claiming: () => Promise<void> | null): Promise<void> {
    const { clock, results } = this.#o;
    results.hurry?.();
    if (this.#giveUpAt === Infinity) this.#giveUpAt = clock.monotonic() + LAST_TRIES_MS;
    const leftMs = (): number => this.#giveUpAt - clock.monotonic();
    while ((this.busy || claiming()) && leftMs() > 0) {
      await within(clock, leftMs(), Promise.resolve(claiming()));
      this.#reportsDue = true;
      await within(clock, leftMs(), this.flush());
    }
  }

  flush(): Promise<void> {
    this.#scheduled = false;
    if (this.#mayWrite()) this.#begin();
    return Promise.all(this.#writes.keys()).then(() => {});
  }

  #schedule(): void {
    if (this.#scheduled || !this.#mayWrite()) return;
    this.#scheduled = true;
    void this.#o.clock.turn().then(() => this.flush());
  }

  #unwritten(): boolean {
    return this.#settlements.length > 0 || this.#reporting.size > 0;
  }

  #mayWrite(): boolean {
    if (this.#awaited === 0)
      return this.#settlements.length > 0 || (this.#reportsDue && this.#reporting.size > 0);
    const large = this.#settlements.length >= LARGE_WRITE && this.#reporting.size === 0;
    return large && !this.#reportsAwaited && this.#awaited < WRITES_MAX;
  }

  #begin(): void {
    const settlements = this.#settlements;
    const reports = this.#takeReports();
    this.#settlements = [];
    this.#reportsAwaited = reports.length > 0;
    this.#awaited++;
    const written = this.#write(reports, settlements).finally(() => this.#writes.delete(written));
    this.#writes.set(written, settlements);
    this.#o.onSent();
    void this.#patiently(written).then(() => {
      this.#awaited--;
      if (this.#awaited === 0) this.#reportsAwaited = false;
      if (this.#mayWrite()) this.#begin();
    });
  }

  /** Where results go to many owners, one that is silent does not hold up the others. */
  async #patiently(written: Promise<void>): Promise<void> {
    const { results, clock } = this.#o;
    if (results.patienceMs === undefined) return written;
    await within(clock, results.patienceMs, written);
  }

  #takeReports(): Report[] {
    this.#callOffReports?.();
    this.#callOffReports = null;
    this.#reportsDue = false;
    const reports: Report[] = [];
    for (const run of this.#reporting) {
      const report = run.takeReport();
      if (report) reports.push(report);
    }
    this.#reporting.clear();
    if (reports.length > 0) this.#reportedAt = this.#o.clock.monotonic();
    return reports;
  }

  async #write(reports: readonly Report[], settlements: readonly SettledRun[]): Promise<void> {
    const { clock, log, watch } = this.#o;
    const tell = watch.settling(settlements);
    for (let tries = 1; ; tries++) {
      const answer = await this.#send({ reports, settlements });
      this.#failing = answer.failed;
      watch.results(!this.#failing);
      if (!answer.failed) {
        for (const { run } of reports) this.#o.onChange(run.id, null);
        tell(answer.settled);
        return this.#announce(settlements, answer.settled);
      }
      const fields = { err: answer.error, results: settlements.length };
      if (hasCode(fields.err, "STOPPED")) return;
      if (clock.monotonic() >= this.#giveUpAt)
        return log.error(fields, "could not store results before the end; their jobs will run again");
      // The results are kept: settling again is harmless, the store knows each run by its epoch.
      if (tries === 1) log.error(fields, "could not store results; trying again");
      await clock.sleep(STORE_RETRY_MS);
    }
  }

  async #send(batch: RunBatch) {
    try {
      const { settled } = await this.#o.results.record(batch);
      return { failed: false, settled } as const;
    } catch (error) {
      return { failed: true, error } as const;
    }
  }

  #announce(settlements: readonly SettledRun[], verdicts: readonly string[]): void {
    for (let i = 0; i < settlements.length; i++) {
      const ended = settlements[i]!;
      const { run, outcome } = ended;
      if (verdicts[i] === "stale") {
        const fields = { jobId: run.id, jobEpoch: run.jobEpoch, ...traceFields(run.trace) };
        this.#o.log.warn(fields, "a result was refused: the job has moved on (STALE_EPOCH)");
      } else {
        this.#o.onChange(run.id, statusAfter(outcome), run);
        this.#o.onEnded?.(ended);
      }
    }
  }
}

export function statusAfter(outcome: Outcome): JobStatus {
  switch (outcome.kind) {
    case "completed":
    case "failed":
    case "cancelled":
      return outcome.kind;
    case "retry":
      return "scheduled";
    case "interrupted":
    case "released":
      return "queued";
  }
}
