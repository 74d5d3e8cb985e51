/**
 * The messages between a worker thread and its pool. Only plain values, because they are copied between threads. Every
 * message names its run: output of an earlier handler (a timer that logs) must not be taken for output of the current
 * one.
 */

import type { AbortReason, JobError } from "../../core/jobs/job.ts";
import type { LogLevel } from "../../store/store.ts";
import type { TaskJob } from "../tasks/task.ts";

export type ToThread =
  | {
      readonly say: "run";
      readonly run: number;
      readonly module: string;
      readonly payload: unknown;
      readonly job: TaskJob;
      readonly attempt: number;
      readonly traceparent: string | null;
    }
  | {
      readonly say: "abort";
      readonly run: number;
      readonly why: AbortReason;
      readonly message: string | null;
    };

export type FromThread = { readonly run: number } & ThreadReport;

export type ThreadReport =
  | { readonly say: "log"; readonly level: LogLevel; readonly message: string }
  | { readonly say: "progress"; readonly value: number; readonly message: string | null }
  /** As JSON text, so that what cannot be a result fails in the same way as on the main thread. */
  | { readonly say: "returned"; readonly result: string }
  | {
      readonly say: "threw";
      readonly error: JobError;
      readonly retryable: boolean;
      readonly aborted: boolean;
    };
