/** Queues in the store. A queue is created by its first job. */

import type { JobStatus } from "../core/jobs/job.ts";

export interface QueueStore {
  setPaused(queue: string, paused: boolean): Promise<void>;
  /** Cheap, however many jobs wait. */
  isPaused(queue: string): Promise<boolean>;
  list(): Promise<readonly QueueInfo[]>;
  /**
   * For each queue with due jobs that nobody runs: since when the oldest of them waits. Cheap, however many wait; in a store that has
   * no line for each queue, one of those that have waited longest.
   */
  waitingSince(): Promise<ReadonlyMap<string, number>>;
}

export interface QueueInfo {
  readonly name: string;
  readonly paused: boolean;
  readonly counts: Readonly<Record<JobStatus, number>>;
}
