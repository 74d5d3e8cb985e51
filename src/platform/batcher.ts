/**
 * Batches when busy, flushes at once when idle. Items that are added during a flush go into the next one; a single item waits only for the
 * end of the current turn of the event loop.
 */

import type { Clock } from "./clock.ts";

export interface BatcherOptions<Item, Result> {
  readonly clock: Pick<Clock, "turn">;
  readonly flush: (items: readonly Item[]) => Promise<readonly Result[]>;
  /** The largest batch: a number of items, or the sum of `sizeOf`, which the last item may exceed. */
  readonly batchMax?: number;
  readonly sizeOf?: (item: Item) => number;
}

interface Waiting<Item, Result> {
  readonly item: Item;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

export class Batcher<Item, Result> {
  readonly #clock: Pick<Clock, "turn">;
  readonly #flush: (items: readonly Item[]) => Promise<readonly Result[]>;
  readonly #batchMax: number;
  readonly #sizeOf: ((item: Item) => number) | undefined;
  #waiting: Waiting<Item, Result>[] = [];
  #busy = false;
  #working: Promise<void> = Promise.resolve();

  constructor(options: BatcherOptions<Item, Result>) {
    this.#clock = options.clock;
    this.#flush = options.flush;
    this.#batchMax = options.batchMax ?? 1_000;
    this.#sizeOf = options.sizeOf;
  }

  get size(): number {
    return this.#waiting.length;
  }

  add(item: Item): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject });
      if (this.#busy) return;
      this.#busy = true;
      this.#working = this.#clock.turn().then(() => this.#run());
    });
  }

  /** Resolves when all that was added is flushed, well or badly. */
  async idle(): Promise<void> {
    while (this.#busy) await this.#working;
  }

  async #run(): Promise<void> {
    while (this.#waiting.length > 0) {
      const count = this.#countOfNext();
      const batch = this.#waiting.length > count ? this.#waiting.splice(0, count) : this.#waiting;
      if (batch === this.#waiting) this.#waiting = [];
      try {
        const results = await this.#flush(batch.map((entry) => entry.item));
        for (let i = 0; i < batch.length; i++) batch[i]!.resolve(results[i]!);
      } catch (error) {
        for (const entry of batch) entry.reject(error);
      }
    }
    this.#busy = false;
  }

  #countOfNext(): number {
    if (!this.#sizeOf) return this.#batchMax;
    let size = 0;
    let count = 0;
    while (count < this.#waiting.length && size < this.#batchMax)
      size += this.#sizeOf(this.#waiting[count++]!.item);
    return count;
  }
}

/** A flush for a leader's writes, each under its term: those of one term are written together. */
export function byTerm<Write, Term, Result>(
  flush: (writes: readonly Write[], term: Term) => Promise<readonly Result[]>,
): BatcherOptions<UnderTerm<Write, Term>, Result>["flush"] {
  return async (items) => {
    const results = new Map<object, Result>();
    for (const [term, each] of Map.groupBy(items, (item) => item.term)) {
      const writes = each.map(({ write }) => write);
      const answers = await flush(writes, term);
      each.forEach((item, at) => results.set(item, answers[at]!));
    }
    return items.map((item) => results.get(item)!);
  };
}

export interface UnderTerm<Write, Term> {
  readonly write: Write;
  readonly term: Term;
}
