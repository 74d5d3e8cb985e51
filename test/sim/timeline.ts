/**
 * The time of a simulated world, and the clocks of its nodes. Everything that happens is an event on one timeline: the
 * earliest first, and at one instant in the order in which they were added. Between two events all promises settle, so a
 * process never runs at the same time as another, and a run repeats exactly.
 *
 * A node's clock can be paused (SIGSTOP: its timers and turns wait, its clocks go on) and ended (SIGKILL: they never come).
 */

import { systemClock, type Clock } from "../../src/platform/clock.ts";

interface Event {
  readonly at: number;
  readonly order: number;
  readonly happen: () => void;
  calledOff: boolean;
}

export class Timeline implements Clock {
  readonly #startedAt = Date.UTC(2026, 0, 1);
  readonly #heap: Event[] = [];
  #at = 0;
  #order = 0;

  /** How many there were so far. */
  get events(): number {
    return this.#order;
  }

  now(): number {
    return Math.floor(this.#startedAt + this.#at);
  }

  monotonic(): number {
    return this.#at;
  }

  after(ms: number, callback: () => void): () => void {
    const at = this.#at + Math.max(ms, 0);
    const event: Event = { at, order: this.#order++, happen: callback, calledOff: false };
    this.#push(event);
    return () => void (event.calledOff = true);
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return sleepOn(this, ms, signal);
  }

  turn(): Promise<void> {
    return new Promise((resolve) => this.after(0, resolve));
  }

  /** Lets so much time pass. */
  async advance(ms: number): Promise<void> {
    const until = this.#at + ms;
    await settle();
    for (;;) {
      const event = this.#heap[0];
      if (!event || event.at > until) break;
      this.#pop();
      if (event.calledOff) continue;
      this.#at = event.at;
      event.happen();
      await settle();
    }
    this.#at = until;
  }

  /** Lets time pass until the promise has settled. */
  async during<T>(work: Promise<T>, atMostMs = 600_000): Promise<T> {
    let over = false;
    const end = (): void => void (over = true);
    work.then(end, end);
    await settle();
    for (let passed = 0; !over && passed < atMostMs; passed += 50) await this.advance(50);
    if (!over) throw new Error(`not done within ${atMostMs} ms`);
    return work;
  }

  #push(event: Event): void {
    const heap = this.#heap;
    let at = heap.push(event) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!before(event, heap[parent]!)) break;
      heap[at] = heap[parent]!;
      at = parent;
    }
    heap[at] = event;
  }

  #pop(): void {
    const heap = this.#heap;
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

function before(a: Event, b: Event): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}

/** One turn of the real event loop runs every promise that can settle: nothing in a simulated world waits for IO. */
function settle(): Promise<void> {
  return systemClock.turn();
}

async function sleepOn(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
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

/** The clocks of one process. The wall clock differs from that of others, and both may run a little fast or slow. */
export class NodeClock implements Clock {
  readonly #timeline: Timeline;
  readonly #rate: number;
  readonly #skewMs: number;
  readonly #held: (() => void)[] = [];
  #state: "runs" | "paused" | "ended" = "runs";

  constructor(timeline: Timeline, { rate = 1, skewMs = 0 } = {}) {
    this.#timeline = timeline;
    this.#rate = rate;
    this.#skewMs = skewMs;
  }

  now(): number {
    return this.#timeline.now() + this.#skewMs;
  }

  monotonic(): number {
    return this.#timeline.monotonic() * this.#rate;
  }

  after(ms: number, callback: () => void): () => void {
    let calledOff = false;
    const fire = (): void => {
      if (calledOff || this.#state === "ended") return;
      if (this.#state === "paused") this.#held.push(fire);
      else callback();
    };
    const callOff = this.#timeline.after(Math.max(ms, 0) / this.#rate, fire);
    return () => {
      calledOff = true;
      callOff();
    };
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return sleepOn(this, ms, signal);
  }

  turn(): Promise<void> {
    return new Promise((resolve) => this.after(0, resolve));
  }

  get state(): "runs" | "paused" | "ended" {
    return this.#state;
  }

  pause(): void {
    if (this.#state === "runs") this.#state = "paused";
  }

  /** What is overdue happens now, in order. */
  resume(): void {
    if (this.#state !== "paused") return;
    this.#state = "runs";
    for (const fire of this.#held.splice(0)) this.#timeline.after(0, fire);
  }

  end(): void {
    this.#state = "ended";
    this.#held.length = 0;
  }
}
