/**
 * A clock that moves only on request, for tests (also those of users) and the simulation: the earliest timer fires first, at one instant in the order in
 * which they were set, and between two of them all promises settle. The wall clock can be moved separately from the monotonic
 * clock, as when the system time is changed or the machine is suspended.
 */

import { systemClock, type Clock } from "./clock.ts";

interface Timer {
  readonly at: number;
  readonly order: number;
  readonly fire: () => void;
  calledOff: boolean;
}

export class ManualClock implements Clock {
  readonly #startAt: number;
  /** Of the wall clock, before where the monotonic one is. */
  #ahead = 0;
  #mono = 0;
  #order = 0;
  #waiting = 0;
  /** A heap: each timer is not later than the two behind it. */
  readonly #timers: Timer[] = [];

  constructor(startAt = Date.UTC(2026, 0, 1)) {
    this.#startAt = startAt;
  }

  /** Whole milliseconds, as the clock of the system. */
  now(): number {
    return Math.floor(this.#startAt + this.#ahead + this.#mono);
  }

  monotonic(): number {
    return this.#mono;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return sleepOn(this, ms, signal);
  }

  after(ms: number, callback: () => void): () => void {
    const at = this.#mono + Math.max(ms, 0);
    const timer: Timer = { at, order: this.#order++, fire: callback, calledOff: false };
    this.#push(timer);
    this.#waiting++;
    return () => {
      if (!timer.calledOff) this.#waiting--;
      timer.calledOff = true;
    };
  }

  turn(): Promise<void> {
    return new Promise((resolve) => this.afterTurn(resolve));
  }

  afterTurn(callback: () => void): void {
    void this.#callAfterTurn(callback);
  }

  async #callAfterTurn(callback: () => void): Promise<void> {
    await systemClock.turn();
    callback();
  }

  /** How many timers wait: a test can tell that a service has gone to sleep. */
  get waiting(): number {
    return this.#waiting;
  }

  /** How many timers were set so far. */
  get events(): number {
    return this.#order;
  }

  /** Moves both clocks on, firing timers in order and letting what they woke run to rest in between. */
  async advance(ms: number): Promise<void> {
    const until = this.#mono + ms;
    await this.settle();
    for (;;) {
      const next = this.#timers[0];
      if (!next || next.at > until) break;
      this.#pop();
      if (next.calledOff) continue;
      next.calledOff = true;
      this.#waiting--;
      this.#mono = Math.max(this.#mono, next.at);
      next.fire();
      await this.settle();
    }
    this.#mono = until;
    await this.settle();
  }

  /** The same in one leap, as after a long pause of the process: each timer fires once, at the end of it. */
  async leap(ms: number): Promise<void> {
    await this.settle();
    this.#mono += ms;
    await this.advance(0);
  }

  /** The wall clock is set: monotonic time and timers do not notice. */
  setWall(at: number): void {
    this.#ahead = at - this.#startAt - this.#mono;
  }

  /** The machine sleeps: the world's clock goes on, ours stands still. */
  suspend(ms: number): void {
    this.#ahead += ms;
  }

  /** This process stands still, as in a handler that never waits. */
  hold(ms: number): void {
    this.#mono += ms;
  }

  /** Lets promise chains run until nothing is left: one turn of the event loop empties the microtask queue. */
  async settle(): Promise<void> {
    for (let turn = 0; turn < 3; turn++) await systemClock.turn();
  }

  #push(timer: Timer): void {
    const heap = this.#timers;
    let at = heap.push(timer) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!before(timer, heap[parent]!)) break;
      heap[at] = heap[parent]!;
      at = parent;
    }
    heap[at] = timer;
  }

  #pop(): void {
    const heap = this.#timers;
    const last = heap.pop()!;
    if (heap.length === 0) return;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && before(heap[child + 1]!, heap[child]!)) child++;
      if (!before(heap[child]!, last)) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = last;
  }
}

function before(a: Timer, b: Timer): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}

export async function sleepOn(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return;
  await new Promise<void>((resolve) => {
    const done = (): void => {
      callOff();
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const callOff = clock.after(ms, done);
    signal?.addEventListener("abort", done, { once: true });
  });
}
