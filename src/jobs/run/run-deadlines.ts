import type { Clock } from "../../platform/clock.ts";
import type { JobRun } from "./job-run.ts";

export interface RunDeadlinesOptions {
  readonly clock: Clock;
  readonly runs: () => Iterable<JobRun>;
  /** Moves the run's deadline on, or abandons it. */
  readonly onDue: (run: JobRun) => void;
}

/** One timer for the deadlines of all runs: a timer for each would cost a short job more than its handler does. */
export class RunDeadlines {
  readonly #o: RunDeadlinesOptions;
  #next = Infinity;
  #cancel: (() => void) | null = null;

  constructor(options: RunDeadlinesOptions) {
    this.#o = options;
  }

  /** A run has this deadline now, on the monotonic clock. */
  watch(at: number): void {
    if (at >= this.#next) return;
    this.#cancel?.();
    this.#next = at;
    this.#cancel = this.#o.clock.after(Math.ceil(at - this.#o.clock.monotonic()), () => this.#look());
  }

  stop(): void {
    this.#cancel?.();
    this.#cancel = null;
    this.#next = Infinity;
  }

  #look(): void {
    const now = this.#o.clock.monotonic();
    this.#next = Infinity;
    let next = Infinity;
    for (const run of this.#o.runs()) {
      if (run.deadline <= now) this.#o.onDue(run);
      if (!run.abandoned && run.deadline < next) next = run.deadline;
    }
    this.watch(next);
  }
}
