/** The bodies of messages. Readers ignore fields that they do not know. */

import type { JobId } from "../core/ids.ts";
import type { JobStatus } from "../core/job.ts";

export interface JobChange {
  readonly id: JobId;
  /** Null when only logs or progress changed. */
  readonly status: JobStatus | null;
}

export interface CancelWish {
  readonly id: JobId;
  readonly reason: string | null;
}
