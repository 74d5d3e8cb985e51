/**
 * A clock that moves only on request, for tests and the simulation. The wall clock can be moved separately from the
 * monotonic clock, as when the system time is changed or the machine is suspended.
 */

import { systemClock, type Clock } from "../../src/platform/clock.ts";

interface Timer {
  readonly at: number;
  readonly order: number;
  readonly fire: () => void;
}

export class ManualClock implements Clock {
  #wall: number;
  #mono = 0;
  #order = 0;
  readonly #timers = new Set<Timer>();

  constructor(startAt = Date.UTC(2026, 0, 1)) {
    this.#wall = startAt;
  }

  /** Whole milliseconds, as the clock of the system. */
  now(): number {
    return Math.floor(this.#wall);
  }

  monotonic(): number {
    return this.#mono;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const done = (): void => {
        cancel();
        signal?.removeEventListener("abort", done);
        resolve();
      };
      const cancel = this.after(ms, done);
      signal?.addEventListener("abort", done, { once: true });
    });
  }

  after(ms: number, callback: () => void): () => void {
    const timer: Timer = { at: this.#mono + Math.max(ms, 0), order: this.#order++, fire: callback };
    this.#timers.add(timer);
    return () => void this.#timers.delete(timer);
  }

  turn(): Promise<void> {
    return systemClock.turn();
  }

  /** How many timers wait: a test can tell that a service has gone to sleep. */
  get waiting(): number {
    return this.#timers.size;
  }

  /** Moves both clocks on, firing timers in order and letting what they woke run to rest in between. */
  async advance(ms: number): Promise<void> {
    const until = this.#mono + ms;
    await settle();
    for (;;) {
      const next = this.#earliest();
      if (!next || next.at > until) break;
      this.#move(next.at - this.#mono);
      this.#timers.delete(next);
      next.fire();
      await settle();
    }
    this.#move(until - this.#mono);
    await settle();
  }

  /** The wall clock is set: monotonic time and timers do not notice. */
  setWall(at: number): void {
    this.#wall = at;
  }

  /** The machine sleeps: the world's clock goes on, ours stands still. */
  suspend(ms: number): void {
    this.#wall += ms;
  }

  #move(ms: number): void {
    this.#mono += ms;
    this.#wall += ms;
  }

  #earliest(): Timer | undefined {
    let first: Timer | undefined;
    for (const timer of this.#timers) {
      if (!first || timer.at < first.at || (timer.at === first.at && timer.order < first.order))
        first = timer;
    }
    return first;
  }
}

/** Lets promise chains run until nothing is left: one turn of the event loop empties the microtask queue. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await systemClock.turn();
}
