import type { QueueInfo, QueueStore } from "../store.ts";
import type { StoreCache } from "./jobs/store-cache.ts";
import type { Turn } from "./turn.ts";

export class MemoryQueues implements QueueStore {
  readonly #ledger: StoreCache;
  readonly #turn: Turn;

  constructor(options: { readonly ledger: StoreCache; readonly turn: Turn }) {
    this.#ledger = options.ledger;
    this.#turn = options.turn;
  }

  setPaused(queue: string, paused: boolean): Promise<void> {
    return this.#turn(() => this.#ledger.pause(queue, paused));
  }

  isPaused(queue: string): Promise<boolean> {
    return this.#turn(() => this.#ledger.isPaused(queue));
  }

  waitingSince(): Promise<ReadonlyMap<string, number>> {
    return this.#turn(() => this.#ledger.waitingSince());
  }

  list(): Promise<readonly QueueInfo[]> {
    return this.#turn(() => this.#ledger.queues());
  }
}
