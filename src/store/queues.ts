/** Queues in the store. A queue is created by its first job. */

import type { Counts } from "./job-row.ts";

export interface QueueStore {
  setPaused(queue: string, paused: boolean): Promise<void>;
  /** Cheap, however many jobs wait. */
  isPaused(queue: string): Promise<boolean>;
  /** In the order of names. Counts the unfinished jobs, so a store with many of them needs some time. */
  list(): Promise<readonly QueueInfo[]>;
}

export interface QueueInfo {
  readonly name: string;
  readonly paused: boolean;
  readonly counts: Readonly<Counts>;
  /**
   * Since when the oldest due job waits that no worker runs, by the store's clock; null if none waits. An estimate in a
   * store without an index for each queue: one of the jobs that have waited longest.
   */
  readonly oldestAt: number | null;
}
