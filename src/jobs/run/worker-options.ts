/** What a worker is built of. */

import type { Channels } from "../../channels/channels.ts";
import type { JobId } from "../../core/ids.ts";
import type { JobStatus } from "../../core/jobs/job.ts";
import type { Platform } from "../../platform/platform.ts";
import type { Author, ClaimedJob } from "../../store/store.ts";
import type { TaskRegistry } from "../tasks/task-registry.ts";
import type { JobRun } from "./job-run.ts";
import type { RunJobs } from "./run-jobs.ts";
import type { OutcomeRules } from "./run-outcome.ts";
import type { ThreadPool } from "./thread-pool.ts";
import type { SettledRun, WorkerMonitor } from "./worker-monitor.ts";
import type { WorkerPorts } from "./worker-ports.ts";
import type { WorkerSettings } from "./worker-settings.ts";

export type WorkerPlatform = Pick<Platform, "clock" | "log" | "identity">;

export interface WorkerOptions extends WorkerPorts {
  readonly tasks: TaskRegistry;
  readonly threads: ThreadPool;
  /** Left out where no hints and no requests to cancel come by topics. */
  readonly channels?: Pick<Channels, "subscribe" | "privateChannel">;
  readonly author: () => Author;
  readonly rules: OutcomeRules;
  readonly settings: WorkerSettings;
  readonly watch?: WorkerMonitor;
  /** What handlers submit and wait for; left out where they cannot. */
  readonly jobs?: RunJobs;
  /** Called around each handler, with what runs it. */
  readonly around?: (run: JobRun, next: () => unknown) => unknown;
  /** A job changed in the store, for those who follow it. Without a status: only its logs or its progress. */
  readonly onChange: (id: JobId, status: JobStatus | null, job?: ClaimedJob) => void;
  readonly onEnded?: (ended: SettledRun) => void;
}
