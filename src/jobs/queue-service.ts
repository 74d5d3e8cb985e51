import type { Queues } from "../api/services.ts";
import type { QueueInfo, Store } from "../store/store.ts";

export interface QueueServiceOptions {
  readonly store: Pick<Store, "queues">;
  /** Jobs may be handed out again. */
  readonly onReady: () => void;
}

export class QueueService implements Queues {
  readonly #o: QueueServiceOptions;

  constructor(options: QueueServiceOptions) {
    this.#o = options;
  }

  list(): Promise<readonly QueueInfo[]> {
    return this.#o.store.queues.list();
  }

  waitingSince(): Promise<ReadonlyMap<string, number>> {
    return this.#o.store.queues.waitingSince();
  }

  async setPaused(queue: string, paused: boolean): Promise<void> {
    await this.#o.store.queues.setPaused(queue, paused);
    this.#o.onReady();
  }
}
