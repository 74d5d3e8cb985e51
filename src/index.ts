/**
 * The public API of the package: exports of this file are stable, everything else may change.
 *
 * It supports three uses of Baton: writing tasks (`defineTask`), running a node inside another program (`createNode`),
 * and calling nodes that run elsewhere (`createClient`, which `batonjs/client` exports without the server).
 */

// Tasks
export { defineTask, PermanentError, RetryAfter } from "./jobs/tasks/task.ts";
export type {
  AnyTask,
  ChildJobs,
  Handler,
  Task,
  TaskContext,
  TaskDefinition,
  TaskJob,
  TaskLog,
  TaskOptions,
} from "./jobs/tasks/task.ts";
export { JobAborted } from "./jobs/run/job-run.ts";

// A node in this process
export { createNode } from "./library/create-node.ts";
export type { Baton, HandleOf, JobEntry, JobSubmitOptions, PayloadOf } from "./library/baton.ts";
export type { Middleware, NodeOptions, TasksOption } from "./library/node-options.ts";
export type { BatonEvent, BatonEvents, EventJob, FailedRun, RunJob } from "./library/node-listeners.ts";
export { createLog } from "./platform/log.ts";
export type { Log, LogFields, LogOptions } from "./platform/log.ts";
export type { Clock } from "./platform/clock.ts";
export { VERSION } from "./platform/version.ts";

// What a node offers to the program around it
export type { Health } from "./observe/readiness.ts";
export type { Jobs, JobView, WaitingReason } from "./jobs/job-service.ts";
export type { NodeServices } from "./api/node-services.ts";
export type { Queues } from "./jobs/queue-service.ts";
export type { ScheduleRequest, Schedules } from "./jobs/schedules/schedule-service.ts";
export type { SubmitOptions, SubmitRequest } from "./jobs/submit/submitter.ts";
export { JobHandle } from "./jobs/job-handle.ts";
export type { JobEvent, WaitOptions } from "./jobs/job-handle.ts";
export type { JobInfo, JobLogLine } from "./jobs/job-info.ts";
export type { JobOptions } from "./core/jobs/job-options.ts";
export type { JsonOf } from "./core/json.ts";
export type { Duration } from "./core/duration.ts";
export type { TaskInfo } from "./jobs/tasks/task-registry.ts";
export type {
  CancelAnswer,
  Guarantees,
  JobPage,
  JobQuery,
  LogLevel,
  LogLine,
  NotedOccurrence,
  QueueInfo,
  Submitted,
  TransactionClient,
} from "./store/store.ts";
export { isFinal, JOB_STATUSES } from "./core/jobs/job.ts";
export type { AbortReason, FinalStatus, Job, JobError, JobStatus } from "./core/jobs/job.ts";
export { isJobId } from "./core/ids.ts";
export type { JobId, NodeName } from "./core/ids.ts";
export type { MissedPolicy, OverlapPolicy, Schedule, SkipReason, Timing } from "./core/schedules/schedule.ts";
export type { RetryPolicy } from "./core/jobs/retry.ts";

// A cluster elsewhere
export { createClient } from "./client/create-client.ts";
export type { Client, ClientOptions } from "./client/create-client.ts";

// Errors: test the code, never the text
export { BatonError, hasCode, JobFailed } from "./core/errors.ts";
export type { ErrorCode, ErrorDetails, Issue } from "./core/errors.ts";
