import type { JobId } from "../core/ids.ts";
import type { Clock } from "../platform/clock.ts";
import type { ClaimedJob } from "../store/store.ts";

/** The window over which the rate of finished jobs decides how far to claim ahead. */
const RATE_WINDOW_MS = 100;

/**
 * Jobs that are claimed and not started yet. How many there may be follows how many were run lately: none for slow
 * jobs, so that a crash strands none of them, and up to `prefetchMax` for short ones.
 */
export class ClaimBuffer {
  readonly #clock: Clock;
  readonly #prefetchMax: number;
  #jobs: ClaimedJob[] = [];
  #next = 0;
  #finishedInWindow = 0;
  #windowFrom = 0;
  #lastWindow = 0;

  constructor(options: { readonly clock: Clock; readonly prefetchMax: number }) {
    this.#clock = options.clock;
    this.#prefetchMax = options.prefetchMax;
  }

  get size(): number {
    return this.#jobs.length - this.#next;
  }

  /** How many more to claim now. Asks only when half of what may be held is gone, to ask for many at once. */
  wanted(concurrency: number, running: number): number {
    const held = running + this.size;
    const capacity = concurrency + Math.min(this.#prefetchMax, this.#recentlyFinished());
    const room = capacity - held;
    return held < concurrency || room * 2 >= capacity ? room : 0;
  }

  noteFinished(): void {
    this.#finishedInWindow++;
  }

  add(jobs: readonly ClaimedJob[]): void {
    this.#jobs = this.size === 0 ? [...jobs] : [...this.takeAll(), ...jobs];
    this.#next = 0;
  }

  /** The next one; undefined when there is none. */
  take(): ClaimedJob | undefined {
    return this.size > 0 ? this.#jobs[this.#next++] : undefined;
  }

  takeAll(): ClaimedJob[] {
    const rest = this.#jobs.slice(this.#next);
    this.#jobs = [];
    this.#next = 0;
    return rest;
  }

  remove(id: JobId): ClaimedJob | undefined {
    const at = this.#jobs.findIndex((job, index) => index >= this.#next && job.id === id);
    return at < 0 ? undefined : this.#jobs.splice(at, 1)[0];
  }

  some(test: (job: ClaimedJob) => boolean): boolean {
    for (let i = this.#next; i < this.#jobs.length; i++) if (test(this.#jobs[i]!)) return true;
    return false;
  }

  #recentlyFinished(): number {
    const now = this.#clock.monotonic();
    if (now - this.#windowFrom >= RATE_WINDOW_MS) {
      this.#lastWindow = now - this.#windowFrom < 2 * RATE_WINDOW_MS ? this.#finishedInWindow : 0;
      this.#finishedInWindow = 0;
      this.#windowFrom = now;
    }
    return Math.max(this.#lastWindow, this.#finishedInWindow);
  }
}
