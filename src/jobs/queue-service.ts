import { Cached } from "../platform/cached.ts";
import type { Platform } from "../platform/platform.ts";
import type { QueueInfo, QueueStore, Store } from "../store/store.ts";

export type Queues = Pick<QueueService, "list" | "setPaused">;

export class QueueService {
  readonly #pauses: Pick<QueueStore, "setPaused">;
  readonly #onReady: () => void;
  /** Counting many jobs takes a database a while, and all who have the page open ask at the same time. */
  readonly #counts: Cached<readonly QueueInfo[]>;

  /**
   * `pauses`: the store itself, or the table of a cluster whose nodes have their own stores. `onReady` is called when
   * jobs may be handed out again.
   */
  constructor(
    { clock }: Pick<Platform, "clock">,
    { queues }: Pick<Store, "queues">,
    pauses: Pick<QueueStore, "setPaused">,
    onReady: () => void,
  ) {
    this.#pauses = pauses;
    this.#onReady = onReady;
    this.#counts = new Cached(clock, 0, () => queues.list());
  }

  list(): Promise<readonly QueueInfo[]> {
    return this.#counts.next();
  }

  async setPaused(queue: string, paused: boolean): Promise<void> {
    await this.#pauses.setPaused(queue, paused);
    this.#onReady();
  }
}
