/**
 * Counts operations that must not be cut off when the node stops. The flag is read and the count raised in the same turn of the event loop:
 * operations that have begun are waited for, later ones are refused.
 */

import type { Clock } from "./clock.ts";
import { within } from "./loop.ts";

export class InFlight {
  readonly #idle: IdleWait;
  #closing = new AbortController();
  #count = 0;

  constructor(clock: Clock) {
    this.#idle = new IdleWait(clock, () => this.#count > 0);
  }

  get count(): number {
    return this.#count;
  }

  get closed(): boolean {
    return this.#closing.signal.aborted;
  }

  /** Aborted by `close`, until `open` makes another. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /** Null when it is closed. The returned function may be called twice, and late, and counts once. */
  enter(): (() => void) | null {
    if (this.closed) return null;
    this.#count++;
    let open = true;
    return () => {
      if (!open) return;
      open = false;
      this.#count--;
      if (this.#count === 0) this.#idle.tell();
    };
  }

  close(): void {
    this.#closing.abort();
  }

  /** For a node that is started again. What is under way from before is still counted. */
  open(): void {
    if (this.closed) this.#closing = new AbortController();
  }

  /** Whether all have ended in time, or when `hurry` fires; later calls see what has ended meanwhile. */
  async drained(timeoutMs: number, hurry?: AbortSignal): Promise<boolean> {
    await this.#idle.within(timeoutMs, hurry);
    return this.#count === 0;
  }
}

export class IdleWait {
  readonly #clock: Clock;
  readonly #busy: () => boolean;
  #waiters: (() => void)[] = [];

  constructor(clock: Clock, busy: () => boolean) {
    this.#clock = clock;
    this.#busy = busy;
  }

  async within(ms: number, hurry?: AbortSignal): Promise<void> {
    if (!this.#busy() || ms <= 0 || hurry?.aborted) return;
    const idle = new Promise<void>((resolve) => this.#waiters.push(resolve));
    await within(this.#clock, ms, idle, hurry);
  }

  tell(): void {
    for (const resolve of this.#waiters.splice(0)) resolve();
  }
}
