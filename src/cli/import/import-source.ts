/** An installation of another job system, as `baton import` reads it. Nothing in it is ever changed. */

import type { JobRequestBody, NamedScheduleRequest } from "../../client/baton-client.ts";
import { BatonError, nearest, reasonOf } from "../../core/errors.ts";
import { ATTEMPTS_MAX, PRIORITY_MAX, PRIORITY_MIN } from "../../core/jobs/job-fields.ts";
import { asFailure, CliFailure, EXIT } from "../failure.ts";

export interface ImportSource extends AsyncDisposable {
  readonly kind: "bullmq" | "pg-boss";
  /** Without a password. */
  readonly address: string;
  readonly queues: readonly SourceQueue[];
  /** Those that wait, in the order in which the other system would run them, in pages. */
  jobs(queue: string): AsyncIterable<readonly FoundJob[]>;
  schedules(queue: string): Promise<readonly FoundSchedule[]>;
}

export interface SourceQueue {
  readonly name: string;
  readonly waiting: number;
  readonly active: number;
  /** Jobs that wait for other jobs, where they are not among the waiting ones. */
  readonly flows: number;
  /** Why a job of this queue may also be run over there. */
  readonly mayRun: string | null;
}

export interface FoundJob {
  readonly id: string;
  readonly name: string;
  /** Distinguishes it from an earlier job of the same id, which an application may give again. */
  readonly createdAt: number;
  readonly payload: unknown;
  readonly priority: number | undefined;
  readonly attempts: number;
  readonly runAt: number | null;
  /** It waits for other jobs, or others for it. */
  readonly inFlow: boolean;
  /** The schedule that will run this time by itself once it is imported. */
  readonly nextOf: string | null;
}

export interface FoundSchedule {
  readonly name: string;
  /** Of its jobs. */
  readonly job: string;
  readonly body: Omit<NamedScheduleRequest, "name" | "task" | "queue">;
  readonly refused: string | null;
  readonly note: string | null;
}

export function clampedPriority(priority: number): number | undefined {
  // The task's own priority counts where the job has none.
  return priority === 0 ? undefined : Math.max(PRIORITY_MIN, Math.min(PRIORITY_MAX, priority));
}

export function clampedAttempts(attempts: number): NonNullable<JobRequestBody["max_attempts"]> {
  return Math.max(1, Math.min(ATTEMPTS_MAX, attempts));
}

/** The queues to read: those that were asked for, or all. */
export function chosenQueues(
  wanted: readonly string[],
  known: readonly string[],
  place: string,
  whereElse: string,
): readonly string[] {
  if (known.length === 0) throw new CliFailure(EXIT.notFound, `there is no queue in ${place}`, whereElse);
  for (const name of wanted) {
    if (known.includes(name)) continue;
    const guess = nearest(name, known);
    const hint = guess === null ? `there are: ${known.slice(0, 20).join(", ")}` : `did you mean "${guess}"?`;
    throw new CliFailure(EXIT.notFound, `there is no queue "${name}" in ${place}`, hint);
  }
  return wanted.length === 0 ? known : wanted;
}

/** What the driver says about a server that cannot be read: hints about the store of a node would mislead here. */
export function unreadable(what: string, error: unknown): CliFailure {
  if (error instanceof CliFailure) return error;
  if (!(error instanceof BatonError)) return new CliFailure(EXIT.failure, `${what}: ${reasonOf(error)}`);
  if (error.code === "STORE_UNAVAILABLE") {
    const hint = "does it run, and can this machine reach it?";
    return new CliFailure(EXIT.unreachable, error.message, hint);
  }
  if (error.code === "BAD_CONFIG") return new CliFailure(EXIT.usage, error.message);
  return asFailure(error);
}
