/** For everything that repeats, waits or takes turns. Nothing here logs or handles the errors of what it runs. */

import type { Clock } from "./clock.ts";
import type { Random } from "./random.ts";

/** After a call to the store that failed: soon enough for a restart of the database, and no flood. */
export const STORE_RETRY_MS = 250;

/** A pause that `wake` ends. A wake-up before a pause skips the next one, so that none is missed. */
export class Pause {
  readonly #clock: Clock;
  #woken = false;
  #end: () => void = () => {};

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  wake(): void {
    this.#woken = true;
    this.#end();
  }

  /** Forgets wake-ups so far: what follows takes account of them. */
  clear(): void {
    this.#woken = false;
  }

  /** True when a wake-up ended it, or came before it. */
  async sleep(ms: number, signal?: AbortSignal): Promise<boolean> {
    if (!this.#woken) await earliest(this.#clock, ms, signal, (end) => (this.#end = end));
    const woken = this.#woken;
    this.#woken = false;
    return woken;
  }
}

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

/** Repeats a step until the signal is aborted, for work that ends with its caller. `step` returns how long to wait before the next one. */
export async function repeat(clock: Clock, signal: AbortSignal, step: () => Promise<number>): Promise<void> {
  while (!signal.aborted) await clock.sleep(await step(), signal);
}

/**
 * Repeats a call until it succeeds. After a failure `delayMs` says how long to wait, or null to give up. Rejects with the last error, also
 * when the signal is aborted.
 */
export async function retry<Answer>(
  clock: Clock,
  call: () => Promise<Answer>,
  delayMs: (error: unknown) => number | null,
  signal?: AbortSignal,
): Promise<Answer> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      const waitMs = signal?.aborted ? null : delayMs(error);
      if (waitMs === null) throw error;
      await clock.sleep(waitMs, signal);
      if (signal?.aborted) throw error;
    }
  }
}

/** Delays that double up to a limit. With `random` each is spread by half to both sides, for those who fail together. */
export class Backoff {
  readonly #firstMs: number;
  readonly #maxMs: number;
  readonly #random: Random | null;
  #failures = 0;

  constructor(firstMs: number, maxMs: number, random: Random | null = null) {
    this.#firstMs = firstMs;
    this.#maxMs = maxMs;
    this.#random = random;
  }

  get failures(): number {
    return this.#failures;
  }

  next(): number {
    const delayMs = Math.min(this.#firstMs * 2 ** this.#failures++, this.#maxMs);
    return this.#random ? delayMs * (0.5 + this.#random.chance()) : delayMs;
  }

  reset(): void {
    this.#failures = 0;
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

  async idle(): Promise<void> {
    await this.#last;
  }
}

/** The result of the work, or undefined when it takes longer. The work goes on; its later errors are the caller's. */
export async function within<Result>(
  clock: Clock,
  ms: number,
  work: Promise<Result>,
  signal?: AbortSignal,
): Promise<Result | undefined> {
  let end = (): void => {};
  const late = earliest(clock, ms, signal, (given) => (end = given));
  return Promise.race([work, late]).finally(end);
}

/** Resolves after `ms`, with the signal, or by the function that `onBegin` gets: an AbortController would build an exception. */
async function earliest(
  clock: Clock,
  ms: number,
  signal: AbortSignal | undefined,
  onBegin: (end: () => void) => void,
): Promise<undefined> {
  if (signal?.aborted) return;
  await new Promise<void>((resolve) => {
    const end = (): void => {
      cancel();
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const cancel = ms === Infinity ? () => {} : clock.after(ms, end);
    signal?.addEventListener("abort", end, { once: true });
    onBegin(end);
  });
}

/** A signal that is aborted after `ms`, or with one of the others. Dispose of it (`using`) to release the timer. */
export class Deadline {
  readonly signal: AbortSignal;
  readonly #over = new AbortController();
  readonly #callOff: () => void;

  constructor(clock: Clock, ms: number, ...others: readonly AbortSignal[]) {
    this.signal = others.length > 0 ? AbortSignal.any([this.#over.signal, ...others]) : this.#over.signal;
    this.#callOff = clock.after(ms, () => this.end());
  }

  /** Whether the time is over, or `end` was called; not one of the other signals. */
  get expired(): boolean {
    return this.#over.signal.aborted;
  }

  end(): void {
    this.#over.abort();
  }

  [Symbol.dispose](): void {
    this.#callOff();
  }
}

export async function atOnce<Item>(
  width: number,
  items: IterableIterator<Item>,
  work: (item: Item) => Promise<void>,
): Promise<void> {
  const lane = async (): Promise<void> => {
    for (const item of items) await work(item);
  };
  await Promise.all(Array.from({ length: width }, lane));
}

/** The maximum number of entries in one message to a queue, or in one statement of the store. */
const BATCH_MAX = 200;
/** Batches under way at a time. More, and events of the jobs wait behind them. */
const PARALLEL = 4;

export async function inBatches<Item>(
  items: readonly Item[],
  work: (batch: readonly Item[]) => Promise<void>,
): Promise<void> {
  await atOnce(PARALLEL, split(items, BATCH_MAX).values(), work);
}

/** In their order, in parts of at most so many and of so much weight together. Each part has at least one. */
export function split<Item>(
  items: readonly Item[],
  countMax: number,
  weigh: (item: Item) => number = () => 0,
  weightMax = Infinity,
): Item[][] {
  const parts: Item[][] = [];
  let part: Item[] = [];
  let weight = 0;
  for (const item of items) {
    const more = weigh(item);
    if (part.length === 0 || part.length >= countMax || weight + more > weightMax) {
      parts.push((part = []));
      weight = 0;
    }
    part.push(item);
    weight += more;
  }
  return parts;
}
