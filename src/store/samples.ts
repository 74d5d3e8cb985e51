/** Samples of the cluster's state in the store, written at intervals by the leader of the metrics aggregator role. */

import type { Term } from "../core/leadership/term.ts";
import { each, query, type Scripts, sql } from "./script.ts";

export interface SampleStore {
  /** Stores a sample (JSON text) with the current time. */
  note(sample: string, fence: Term): Promise<void>;
  list(limit: number): Promise<readonly Sample[]>;
}

export interface Sample {
  readonly at: number;
  readonly leaderEpoch: number;
  readonly sample: string;
}

const NOTE = sql("sample-note", "INSERT INTO baton.sample (at, leader_epoch, sample) VALUES ({now}, $2, $3)");
const LIST = sql(
  "sample-list",
  `SELECT at, leader_epoch AS "leaderEpoch", sample FROM baton.sample ORDER BY n DESC LIMIT $1`,
);
export const PURGE_SAMPLES = sql(
  "sample-purge",
  "DELETE FROM baton.sample WHERE at <= {now} - $2::bigint RETURNING n",
);

export function sampleStore(scripts: Scripts): SampleStore {
  return {
    note: (sample, fence) => scripts.write(() => each(NOTE, [[fence.epoch, sample]]), fence),
    list: (limit) => scripts.read(() => query<Sample>(LIST, limit)),
  };
}
