/** Samples of the cluster's state in the store, written at intervals by the leader of the metrics aggregator role. */

import type { Term } from "../core/leadership/term.ts";

export interface SampleStore {
  /** Notes a sample (JSON text) at this instant. */
  note(sample: string, fence: Term): Promise<void>;
  /** Newest first. */
  list(limit: number): Promise<readonly Sample[]>;
  /** Removes samples older than this; answers how many. */
  purge(ageMs: number, fence: Term): Promise<number>;
}

export interface Sample {
  readonly at: number;
  readonly leaderEpoch: number;
  readonly sample: string;
}
