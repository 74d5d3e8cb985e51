import type { Clock } from "../../platform/clock.ts";
import type { JobRun } from "./job-run.ts";
import type { RunningRuns } from "./running-runs.ts";

/** One timer for the deadlines of all runs: a timer for each would cost a short job more than its handler does. */
export class RunDeadlines {
  readonly #clock: Clock;
  readonly #runs: RunningRuns;
  readonly #onDue: (run: JobRun) => void;
  #next = Infinity;
  #cancel: (() => void) | null = null;

  /** `onDue` moves the run's deadline on, or abandons it. */
  constructor(clock: Clock, runs: RunningRuns, onDue: (run: JobRun) => void) {
    this.#clock = clock;
    this.#runs = runs;
    this.#onDue = onDue;
  }

  watch(at: number): void {
    if (at >= this.#next) return;
    this.#cancel?.();
    this.#next = at;
    this.#cancel = this.#clock.after(Math.ceil(at - this.#clock.monotonic()), () => this.#check());
  }

  stop(): void {
    this.#cancel?.();
    this.#cancel = null;
    this.#next = Infinity;
  }

  #check(): void {
    const now = this.#clock.monotonic();
    this.#next = Infinity;
    let next = Infinity;
    for (const run of this.#runs.all()) {
      if (run.deadline <= now && this.#runs.has(run)) this.#onDue(run);
      if (this.#runs.has(run) && run.deadline < next) next = run.deadline;
    }
    this.watch(next);
  }
}
