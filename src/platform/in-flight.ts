/**
 * Counts operations that must not be cut off when the node stops.
 *
 * The flag is read and the count raised in the same turn of the event loop. No operation can begin between the last
 * check of the count and the end: those that have begun are waited for, later ones are refused.
 */

import type { Clock } from "./clock.ts";

export class InFlight {
  readonly #clock: Clock;
  readonly #waiting = new Set<() => void>();
  #closing = new AbortController();
  #count = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get count(): number {
    return this.#count;
  }

  get closed(): boolean {
    return this.#closing.signal.aborted;
  }

  /** Fires with `close`; who looks later finds it fired. Of this opening only: `open` makes another. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /** Null when the door is closed. The way out may be taken twice, and late, and counts once. */
  enter(): (() => void) | null {
    if (this.closed) return null;
    this.#count++;
    let inside = true;
    return () => {
      if (!inside) return;
      inside = false;
      this.#count--;
      if (this.#count === 0) this.#resolveWaiters();
    };
  }

  /** Nobody gets in from now on. */
  close(): void {
    this.#closing.abort();
  }

  /** For a node that is started again. What is still inside from before is still counted. */
  open(): void {
    if (this.closed) this.#closing = new AbortController();
  }

  /**
   * Whether everybody got out in time. At once if nobody is inside, or when `hurry` fires; later calls see those who came out
   * meanwhile.
   */
  drained(timeoutMs: number, hurry?: AbortSignal): Promise<boolean> {
    if (this.#count === 0) return Promise.resolve(true);
    if (hurry?.aborted) return Promise.resolve(false);
    return new Promise((resolve) => {
      const end = (out: boolean): void => {
        cancel();
        hurry?.removeEventListener("abort", late);
        this.#waiting.delete(done);
        resolve(out);
      };
      const done = (): void => end(true);
      const late = (): void => end(false);
      const cancel = this.#clock.after(timeoutMs, late);
      hurry?.addEventListener("abort", late, { once: true });
      this.#waiting.add(done);
    });
  }

  #resolveWaiters(): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const done of waiting) done();
  }
}
