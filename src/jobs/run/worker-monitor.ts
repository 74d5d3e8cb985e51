/** Observes a worker: metrics, spans, and whether it claims as it should. It is called for every job, and only updates a few numbers. */

import { reasonOf } from "../../core/errors.ts";
import type { ClaimFacts } from "../../core/health/work-health.ts";
import type { Platform } from "../../platform/platform.ts";
import type { ClaimedJob, Outcome, Settlement, Verdict } from "../../store/store.ts";
import type { JobRun } from "./job-run.ts";
import type { JobSpans } from "../job-spans.ts";

export interface WorkerSink {
  claimed(jobs: number, tookMs: number): void;
  claimFailed(): void;
  started(job: ClaimedJob, waitedMs: number): void;
  /** `lease_lost`: the job was not ours any more, and nothing was said of it. */
  ended(job: ClaimedJob, how: RunEnd, ranMs: number): void;
  leaseLost(jobs: number): void;
  resultsFailed(): void;
}

export type RunEnd = Exclude<Outcome["kind"], "released"> | "lease_lost";

export interface SettledRun extends Settlement {
  readonly run: ClaimedJob;
  /** Names the run, where traces are recorded. */
  readonly trace?: string;
  /** By the handler, as it was. */
  readonly thrown?: unknown;
}

export interface WorkerMonitorOptions {
  readonly slots: number;
  readonly spans?: JobSpans;
  /** True where another process records claims and results. */
  readonly runsOnly?: boolean;
  readonly sink?: WorkerSink;
}

export interface ClaimState extends ClaimFacts {
  /** Since the last claim was sent; null before the first. */
  readonly sentAgoMs: number | null;
}

export class WorkerMonitor {
  readonly #o: Pick<Platform, "clock"> & WorkerMonitorOptions;
  #sentAt: number | null = null;
  #underWay = false;
  #answeredAt = 0;
  #busyAt = 0;
  #failure: string | null = null;
  #claimedFrom = 0;
  #resultsFailedAt: number | null = null;

  constructor({ clock }: Pick<Platform, "clock">, options: WorkerMonitorOptions) {
    this.#o = { clock, ...options };
  }

  begin(): void {
    this.#answeredAt = this.#busyAt = this.#o.clock.monotonic();
    this.#failure = null;
    this.#resultsFailedAt = null;
  }

  claims(): ClaimState {
    const now = this.#o.clock.monotonic();
    return {
      unansweredMs: Math.max(0, now - Math.max(this.#answeredAt, this.#busyAt)),
      underWayMs: this.#underWay ? now - this.#sentAt! : null,
      failure: this.#failure,
      idleMs: Math.max(0, now - this.#busyAt),
      sentAgoMs: this.#sentAt === null ? null : now - this.#sentAt,
      resultsFailingMs: this.#resultsFailedAt === null ? null : now - this.#resultsFailedAt,
    };
  }

  /** A claim is being sent; answers when, by the monotonic clock. */
  sent(): number {
    const { clock, spans } = this.#o;
    this.#underWay = true;
    if (spans?.on) this.#claimedFrom = clock.now();
    return (this.#sentAt = clock.monotonic());
  }

  answered(jobs: readonly ClaimedJob[]): void {
    const { clock, spans, runsOnly, sink } = this.#o;
    const now = clock.monotonic();
    this.#answeredAt = now;
    this.#underWay = false;
    this.#failure = null;
    if (jobs.length > 0) this.#busyAt = now;
    sink?.claimed(jobs.length, now - this.#sentAt!);
    if (jobs.length > 0 && spans?.on && !runsOnly) spans.claimed(jobs, this.#claimedFrom);
  }

  /** Whether the one before it had failed as well. */
  failed(error: unknown): boolean {
    const again = this.#failure !== null;
    this.#underWay = false;
    this.#failure = reasonOf(error);
    this.#o.sink?.claimFailed();
    return again;
  }

  started(run: JobRun): void {
    const { clock, spans, sink } = this.#o;
    const { claimed } = run;
    const now = clock.now();
    sink?.started(claimed, Math.max(0, now - claimed.runAt));
    if (spans?.on) run.span = spans.run(claimed, now);
  }

  /** `active`: how many ran until then. */
  ended(run: JobRun, outcome: Outcome | null, active: number, now: number): void {
    const { slots, spans, sink } = this.#o;
    if (active >= slots) this.#busyAt = now;
    sink?.ended(run.claimed, endOf(outcome), now - run.startedAt);
    if (run.span) spans!.ran(run.span, outcome);
  }

  leaseLost(jobs: number): void {
    this.#o.sink?.leaseLost(jobs);
  }

  /** Results are being written; answers with what is to be called when the store has spoken. */
  settling(results: readonly SettledRun[]): (verdicts: readonly Verdict[]) => void {
    const { spans, runsOnly } = this.#o;
    if (!spans?.on || runsOnly) return NOBODY;
    const open = results.map(({ run, outcome, trace }) => trace && spans.settle(run, outcome, trace));
    return (verdicts) => open.forEach((span, at) => span && spans.settled(span, verdicts[at]));
  }

  results(taken: boolean): void {
    if (taken) this.#resultsFailedAt = null;
    else {
      this.#resultsFailedAt ??= this.#o.clock.monotonic();
      this.#o.sink?.resultsFailed();
    }
  }
}

const NOBODY = (): void => {};

function endOf(outcome: Outcome | null): RunEnd {
  return outcome === null || outcome.kind === "released" ? "lease_lost" : outcome.kind;
}
