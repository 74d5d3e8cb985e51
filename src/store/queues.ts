/** Queues in the store. A queue is created by its first job. */

import type { Counts } from "./job-row.ts";

export interface QueueStore {
  setPaused(queue: string, paused: boolean): Promise<void>;
  /** Cheap, however many jobs wait. */
  isPaused(queue: string): Promise<boolean>;
  /** In the order of names. Counts unfinished jobs, so many of them take some time. */
  list(): Promise<readonly QueueInfo[]>;
}

export interface QueueInfo {
  readonly name: string;
  readonly paused: boolean;
  readonly counts: Readonly<Counts>;
  /**
   * Since when the oldest due job waits, by the clock of the store; null if none waits. An estimate in a store without
   * an index for each queue.
   */
  readonly oldestAt: number | null;
}
