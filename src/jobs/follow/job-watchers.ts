import type { JobId } from "../../core/ids.ts";
import type { Clock } from "../../platform/clock.ts";

/** The net under the hints: a change made elsewhere is seen after this long at the latest. */
const LOOK_AGAIN_MS = 1_000;

/** Those who follow a job. Costs nothing for jobs that nobody follows. */
export class JobWatchers {
  readonly #clock: Clock;
  readonly #byJob = new Map<JobId, Set<() => void>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#byJob.size;
  }

  changed(id: JobId): void {
    if (this.#byJob.size === 0) return;
    for (const wake of this.#byJob.get(id) ?? []) wake();
  }

  /** Yields at once, then whenever the job may have changed and now and then regardless. */
  async *changes(id: JobId, signal: AbortSignal): AsyncGenerator<void> {
    let stale = true;
    let wake: () => void = () => {};
    const onChange = (): void => {
      stale = true;
      wake();
    };
    const watchers = this.#byJob.get(id) ?? new Set();
    this.#byJob.set(id, watchers.add(onChange));
    try {
      while (!signal.aborted) {
        if (stale) {
          stale = false;
          yield;
          continue;
        }
        const over = new AbortController();
        wake = () => over.abort();
        signal.addEventListener("abort", wake, { once: true });
        await this.#clock.sleep(LOOK_AGAIN_MS, over.signal);
        signal.removeEventListener("abort", wake);
        stale = true;
      }
    } finally {
      watchers.delete(onChange);
      if (watchers.size === 0 && this.#byJob.get(id) === watchers) this.#byJob.delete(id);
    }
  }
}
