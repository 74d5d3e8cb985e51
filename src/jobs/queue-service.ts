import { SingleFlight } from "../platform/single-flight.ts";
import type { QueueInfo, Store } from "../store/store.ts";

export type Queues = Pick<QueueService, "list" | "waitingSince" | "setPaused">;

export interface QueueServiceOptions {
  readonly store: Pick<Store, "queues">;
  /** Jobs may be handed out again. */
  readonly onReady: () => void;
}

export class QueueService {
  readonly #o: QueueServiceOptions;
  /** Counting many jobs takes a database a while, and all who have the page open ask at the same time. */
  readonly #counts: SingleFlight<readonly QueueInfo[]>;

  constructor(options: QueueServiceOptions) {
    this.#o = options;
    this.#counts = new SingleFlight(() => options.store.queues.list());
  }

  list(): Promise<readonly QueueInfo[]> {
    return this.#counts.get();
  }

  /** Since when the oldest due job of each queue waits. */
  waitingSince(): Promise<ReadonlyMap<string, number>> {
    return this.#o.store.queues.waitingSince();
  }

  async setPaused(queue: string, paused: boolean): Promise<void> {
    await this.#o.store.queues.setPaused(queue, paused);
    this.#o.onReady();
  }
}
