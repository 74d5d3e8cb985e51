/**
 * Batches when busy, flushes at once when idle. Items that are added during a flush go into the next one; a single item
 * waits only for the end of the current turn of the event loop. There is no delay to tune.
 */
export interface BatcherOptions<Item, Result> {
  /** Results in the order of the items. */
  readonly flush: (items: readonly Item[]) => Promise<readonly Result[]>;
  readonly batchMax?: number;
}

interface Waiting<Item, Result> {
  readonly item: Item;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

export class Batcher<Item, Result> {
  readonly #flush: (items: readonly Item[]) => Promise<readonly Result[]>;
  readonly #batchMax: number;
  #waiting: Waiting<Item, Result>[] = [];
  #busy = false;
  #working: Promise<void> = Promise.resolve();

  constructor(options: BatcherOptions<Item, Result>) {
    this.#flush = options.flush;
    this.#batchMax = options.batchMax ?? 1_000;
  }

  get size(): number {
    return this.#waiting.length;
  }

  add(item: Item): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject });
      if (this.#busy) return;
      this.#busy = true;
      this.#working = new Promise((done) => setImmediate(() => done(this.#run())));
    });
  }

  /** Resolves when all that was added is flushed, well or badly. */
  async idle(): Promise<void> {
    while (this.#busy) await this.#working;
  }

  async #run(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch =
        this.#waiting.length > this.#batchMax ? this.#waiting.splice(0, this.#batchMax) : this.#waiting;
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
}
