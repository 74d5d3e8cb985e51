/**
 * What the operations of the API work with. `node.ts` builds the real thing; a test may hand in another.
 */

import type { Leadership, Membership } from "../coordination/coordination.ts";
import type { Job, JobStatus } from "../core/job.ts";
import type { JobId } from "../core/ids.ts";
import type { NodeIdentity } from "../core/node.ts";
import type { Schedule, MissedPolicy, OverlapPolicy } from "../core/schedule.ts";
import type { Clock } from "../platform/clock.ts";
import type {
  CancelAnswer,
  Guarantees,
  JobPage,
  JobQuery,
  LogLine,
  NotedOccurrence,
  QueueInfo,
  Submitted,
} from "../store/store.ts";

export interface NodeServices {
  readonly identity: NodeIdentity;
  readonly version: string;
  readonly startedAt: number;
  readonly clock: Clock;
  readonly guarantees: Guarantees;
  readonly jobs: Jobs;
  readonly queues: Queues;
  readonly schedules: Schedules;
  readonly leadership: Leadership;
  readonly membership: Membership;
  readonly health: Health;
  /** The tasks that this node can run. */
  readonly tasks: { list(): readonly TaskInfo[] };
}

export interface TaskInfo {
  readonly name: string;
  readonly isolation: "none" | "thread";
  readonly hasSchema: boolean;
}

/** As a caller writes it, apart from the spelling; everything but the task has a default. */
export interface SubmitRequest {
  readonly task: string;
  readonly payload?: unknown;
  readonly queue?: string;
  readonly priority?: number;
  /** Wall time in ms. Not together with `delayMs`. */
  readonly runAt?: number;
  readonly delayMs?: number;
  readonly maxAttempts?: number;
  readonly timeoutMs?: number;
  readonly idempotencyKey?: string;
}

/** A job, and the one sentence on why it is not running. */
export interface JobView extends Job {
  /** Null unless the job waits. */
  readonly waitingFor: WaitingReason | null;
}

export interface WaitingReason {
  readonly code:
    | "not_due"
    | "retry_delay"
    | "queue_paused"
    | "unknown_task"
    | "suspect"
    | "workers_busy"
    | "draining"
    | "no_worker";
  readonly message: string;
}

export interface Jobs {
  /** All of them or none. Rejects with BAD_REQUEST or BAD_PAYLOAD and the field at fault. */
  submit(requests: readonly SubmitRequest[]): Promise<readonly Submitted[]>;
  get(id: JobId): Promise<JobView | null>;
  result(id: JobId): Promise<string | null>;
  list(query: JobQuery): Promise<JobPage>;
  logs(id: JobId, after: number, limit: number): Promise<readonly LogLine[]>;
  cancel(id: JobId, reason: string | null): Promise<CancelAnswer>;
  retry(id: JobId): Promise<JobStatus | "missing" | "retried">;
  remove(id: JobId): Promise<"removed" | "running" | "missing">;
  /** Yields at once, then whenever the job may have changed (and now and then regardless), until the signal. */
  changes(id: JobId, signal: AbortSignal): AsyncIterable<void>;
}

export interface Queues {
  list(): Promise<readonly QueueInfo[]>;
  setPaused(queue: string, paused: boolean): Promise<void>;
}

export interface ScheduleRequest {
  readonly name: string;
  readonly task: string;
  readonly payload?: unknown;
  /** Exactly one of `cron` and `everyMs`. */
  readonly cron?: string;
  readonly everyMs?: number;
  readonly zone?: string;
  readonly queue?: string;
  readonly priority?: number;
  readonly maxAttempts?: number;
  readonly timeoutMs?: number;
  readonly missed?: MissedPolicy;
  readonly missedMax?: number;
  readonly overlap?: OverlapPolicy;
}

export interface Schedules {
  put(
    request: ScheduleRequest,
  ): Promise<{ schedule: Schedule; outcome: "created" | "replaced" | "unchanged" }>;
  get(name: string): Promise<Schedule | null>;
  list(): Promise<readonly Schedule[]>;
  remove(name: string): Promise<boolean>;
  setPaused(name: string, paused: boolean): Promise<Schedule | null>;
  /** Submits its job now, beside the plan; null if there is no such schedule. */
  trigger(name: string): Promise<JobId | null>;
  /** The next instants at which it would fire, whether it is stored or not. Rejects with BAD_SCHEDULE. */
  preview(timing: { cron?: string; everyMs?: number; zone?: string }, count: number): readonly number[];
  history(name: string, limit: number): Promise<readonly NotedOccurrence[]>;
}

export interface Health {
  readonly draining: boolean;
  /** Why only a restart will help; null while all is well. */
  readonly problem: string | null;
  /** Whether this node can do its work now: each check by name, with the reason when it fails. */
  ready(): Promise<{ ready: boolean; checks: Readonly<Record<string, { ok: boolean; reason?: string }>> }>;
}
