/**
 * The runs of a worker, and one timer for their deadlines: a timer for each would cost a short job more than its handler does. An array,
 * because a map that grows and shrinks leaves tables behind that keep what was in them alive until the next full garbage collection.
 */

import type { JobId } from "../../core/ids.ts";
import type { Clock } from "../../platform/clock.ts";
import type { JobRun } from "./job-run.ts";

export class RunningRuns {
  readonly #clock: Clock;
  readonly #onDue: (run: JobRun) => void;
  readonly #runs: JobRun[] = [];
  #next = Infinity;
  #callOff = (): void => {};

  /** `onDue` moves the run's deadline on, or abandons it. */
  constructor(clock: Clock, onDue: (run: JobRun) => void) {
    this.#clock = clock;
    this.#onDue = onDue;
  }

  get size(): number {
    return this.#runs.length;
  }

  add(run: JobRun): void {
    run.place = this.#runs.length;
    this.#runs.push(run);
    this.watch(run.deadline);
  }

  has(run: JobRun): boolean {
    return this.#runs[run.place] === run;
  }

  /** The last one takes its place. */
  delete(run: JobRun): void {
    const last = this.#runs.pop()!;
    if (last !== run) {
      this.#runs[run.place] = last;
      last.place = run.place;
    }
    run.place = -1;
  }

  of(id: JobId): JobRun | undefined {
    return this.#runs.find(({ claimed }) => claimed.id === id);
  }

  /** As they are now: runs may begin and end while the caller looks at them. */
  all(): readonly JobRun[] {
    return [...this.#runs];
  }

  some(test: (run: JobRun) => boolean): boolean {
    return this.#runs.some(test);
  }

  /** A run has this deadline now, on the monotonic clock. */
  watch(at: number): void {
    if (at >= this.#next) return;
    this.#callOff();
    this.#next = at;
    this.#callOff = this.#clock.after(Math.ceil(at - this.#clock.monotonic()), () => this.#check());
  }

  stop(): void {
    this.#callOff();
    this.#next = Infinity;
  }

  #check(): void {
    const now = this.#clock.monotonic();
    this.#next = Infinity;
    let next = Infinity;
    for (const run of this.all()) {
      if (run.deadline <= now && this.has(run)) this.#onDue(run);
      if (this.has(run) && run.deadline < next) next = run.deadline;
    }
    this.watch(next);
  }
}
