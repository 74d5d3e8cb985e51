import type { JobId } from "../../core/ids.ts";
import type { JobRun } from "./job-run.ts";

/**
 * The runs of a worker. An array, because a map that grows and shrinks leaves tables behind that keep what was in them alive until the
 * next full garbage collection.
 */
export class RunningRuns {
  readonly #runs: JobRun[] = [];

  get size(): number {
    return this.#runs.length;
  }

  add(run: JobRun): void {
    run.place = this.#runs.length;
    this.#runs.push(run);
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
}
