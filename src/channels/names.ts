/** The names of channels, each in one place. On Redis they stand behind the prefix of the cluster. */

import type { JobId, NodeName } from "../core/ids.ts";

export const topics = {
  /** A job became claimable, so an idle worker looks at once. */
  jobsReady: "jobs.ready",
  /** A running job is to be cancelled. For everybody, since whoever runs it must hear it. Body: CancelWish. */
  jobCancel: "job.cancel",
  /** A job's status, progress or logs changed. Body: JobChange. */
  jobChanged: "job.changed",
  /** Somebody follows a job, and wants to hear of its changes. Body: { id }. */
  jobFollowed: "job.followed",
  /** A schedule was put, removed, paused or resumed. */
  schedulesChanged: "schedules.changed",
  /** For the node that handed jobs over. Body: HandoffAck. */
  handoffAck: (node: NodeName) => `job.handoff.ack.${node}`,
  /** Body: WorkerHeartbeat. */
  workerHeartbeat: "worker.heartbeat",
  /** Body: CoordinatorHeartbeat. */
  coordinatorHeartbeat: "coordinator.heartbeat",
} as const;

/** A message of a queue has the id of its job as its key: what concerns one job stays in order. */
export const queues = {
  /** For the workers of a queue. Body: Dispatch. */
  dispatch: (queue: string) => `job.dispatch.${queue}`,
  /** Whoever gets it owns the job's events. Body: Assignment. */
  assigned: "job.assigned",
  /** A queue for each job, consumed by its owner and then by the next one. Body: StatusReport. */
  jobStatus: (id: JobId) => `job.${id}.status`,
  /** As for its status. Body: LogLine. */
  jobLogs: (id: JobId) => `job.${id}.logs`,
  /** Jobs that look for another owner. Body: Handoff. */
  handoff: "job.handoff",
} as const;
