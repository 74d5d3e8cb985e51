/** The part of the store port that remembers what the cluster looked like, now and then: written by whoever leads the metrics. */

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
