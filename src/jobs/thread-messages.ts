/** What a worker thread and its pool say to each other. Plain values only: they are copied between threads. */

import type { AbortReason, JobError } from "../core/job.ts";
import type { LogLevel } from "../store/store.ts";
import type { TaskJob } from "./task.ts";

export type ToThread =
  | {
      readonly say: "run";
      readonly module: string;
      readonly payload: unknown;
      readonly job: TaskJob;
      readonly attempt: number;
    }
  | { readonly say: "abort"; readonly why: AbortReason; readonly message: string | null };

export type FromThread =
  | { readonly say: "log"; readonly level: LogLevel; readonly message: string }
  | { readonly say: "progress"; readonly percent: number; readonly message: string | null }
  /** As JSON text, so that what cannot be a result fails in the same way as on the main thread. */
  | { readonly say: "returned"; readonly result: string }
  | {
      readonly say: "threw";
      readonly error: JobError;
      readonly retryable: boolean;
      readonly aborted: boolean;
    };
