/**
 * For everything that repeats, waits or takes turns: a loop with a wake-up, pauses that can be ended early, delays that
 * grow, one-at-a-time execution, limited waits, and work in batches. None of them logs or handles the errors of what it
 * runs.
 */

import type { Clock } from "./clock.ts";

/** A pause that `wake` ends. A wake-up before a pause skips the next one, so that none is missed. */
export class Pause {
  readonly #clock: Clock;
  #woken = false;
  #current = new AbortController();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  wake(): void {
    this.#woken = true;
    this.#current.abort();
  }

  /** Forgets wake-ups so far: what follows takes account of them. */
  clear(): void {
    this.#woken = false;
  }

  /** True when a wake-up ended it, or came before it. */
  async sleep(ms: number, signal?: AbortSignal): Promise<boolean> {
    if (!this.#woken) {
      this.#current = new AbortController();
      const either = signal ? AbortSignal.any([signal, this.#current.signal]) : this.#current.signal;
      await this.#clock.sleep(ms, either);
    }
    const woken = this.#woken;
    this.#woken = false;
    return woken;
  }
}

/** Repeats a step until it is stopped. */
export class Loop {
  readonly #pause: Pause;
  readonly #step: (signal: AbortSignal) => Promise<number>;
  #over = new AbortController();
  #running: Promise<unknown> = Promise.resolve();

  /** `step` returns how long to wait before the next one. It must not reject. */
  constructor(clock: Clock, step: (signal: AbortSignal) => Promise<number>) {
    this.#pause = new Pause(clock);
    this.#step = step;
  }

  start(firstMs = 0): void {
    this.#over.abort();
    this.#over = new AbortController();
    this.#running = Promise.all([this.#running, this.#run(firstMs, this.#over.signal)]);
  }

  /** The next step begins now, or right after the present one. */
  wake(): void {
    this.#pause.wake();
  }

  /** Resolves when no step runs any more. */
  async stop(): Promise<void> {
    this.#over.abort();
    await this.#running;
  }

  async #run(firstMs: number, signal: AbortSignal): Promise<void> {
    if (firstMs > 0) await this.#pause.sleep(firstMs, signal);
    while (!signal.aborted) {
      this.#pause.clear();
      const waitMs = await this.#step(signal);
      await this.#pause.sleep(waitMs, signal);
    }
  }
}

/** Delays that double up to a limit. */
export class Backoff {
  readonly #firstMs: number;
  readonly #maxMs: number;
  #nextMs: number;

  constructor(firstMs: number, maxMs: number) {
    this.#firstMs = firstMs;
    this.#maxMs = maxMs;
    this.#nextMs = firstMs;
  }

  next(): number {
    const delayMs = this.#nextMs;
    this.#nextMs = Math.min(2 * delayMs, this.#maxMs);
    return delayMs;
  }

  reset(): void {
    this.#nextMs = this.#firstMs;
  }
}

/** One at a time, in the order of the calls. */
export class Mutex {
  #last: Promise<unknown> = Promise.resolve();

  run<Result>(work: () => Promise<Result>): Promise<Result> {
    const result = this.#last.then(work);
    this.#last = result.catch(() => {});
    return result;
  }

  /** Resolves when all calls so far have ended. */
  async idle(): Promise<void> {
    await this.#last;
  }
}

/** Waits for the work, for `ms` at most and until the signal. The work goes on; its result and errors are the caller's. */
export async function within(
  clock: Clock,
  ms: number,
  work: Promise<unknown>,
  signal?: AbortSignal,
): Promise<void> {
  const over = new AbortController();
  const either = signal ? AbortSignal.any([signal, over.signal]) : over.signal;
  await Promise.race([work, clock.sleep(ms, either)]).finally(() => over.abort());
}

/**
 * Whether the work was done before the signal was aborted. After an abort the work continues; its failure is then
 * ignored.
 */
export async function doneBefore(work: Promise<void>, signal: AbortSignal): Promise<boolean> {
  const { promise: aborted, resolve } = Promise.withResolvers<boolean>();
  const abort = (): void => resolve(false);
  signal.addEventListener("abort", abort, { once: true });
  if (signal.aborted) abort();
  work.catch(() => {});
  try {
    return await Promise.race([aborted, work.then(() => true)]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

/** The maximum number of entries in one message to a queue, or in one statement of the store. */
const BATCH_MAX = 200;
/** Batches under way at a time. More, and events of the jobs wait behind them. */
const PARALLEL = 4;

/** Does something with all of them, a batch at a time and some batches at once. Rejects with the first failure. */
export async function inBatches<Item>(
  items: readonly Item[],
  work: (batch: readonly Item[]) => Promise<void>,
): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < items.length) {
      const from = next;
      next += BATCH_MAX;
      await work(items.slice(from, next));
    }
  };
  await Promise.all(Array.from({ length: Math.min(PARALLEL, Math.ceil(items.length / BATCH_MAX)) }, worker));
}
