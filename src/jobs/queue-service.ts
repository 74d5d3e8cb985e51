import { Cached } from "../platform/cached.ts";
import type { Platform } from "../platform/platform.ts";
import type { QueueInfo, QueueStore, Store } from "../store/store.ts";

export interface Queues {
  list(): Promise<readonly QueueInfo[]>;
  setPaused(queue: string, paused: boolean): Promise<void>;
}

/**
 * `pauses`: the store itself, or the table of a cluster whose nodes have their own stores. `onReady` is called when jobs
 * may be handed out again.
 */
export function queueService(
  { clock }: Pick<Platform, "clock">,
  { queues }: Pick<Store, "queues">,
  pauses: Pick<QueueStore, "setPaused">,
  onReady: () => void,
): Queues {
  // Counting many jobs takes a database a while, and all who have the page open ask at the same time.
  const counts = new Cached(clock, 0, () => queues.list());
  return {
    list: () => counts.next(),
    async setPaused(queue, paused) {
      await pauses.setPaused(queue, paused);
      onReady();
    },
  };
}
