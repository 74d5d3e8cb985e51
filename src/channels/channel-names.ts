/** The names of all channels. On Redis they follow the prefix of the cluster. */

import type { NodeIdentity } from "../core/node.ts";
import type { DispatchRoute } from "../core/push/dispatch.ts";
import type { NodeName } from "../core/ids.ts";
import type { AssignmentId } from "../store/ownership.ts";

export const topics = {
  /** A job became claimable, so an idle worker looks at once. */
  jobsReady: "jobs.ready",
  /** For the worker of this incarnation: a job runs under its slot. Comes on the private channel only. Body: GivenJob. */
  jobGiven: (incarnation: string) => `job.given.${incarnation}`,
  /** Requests the cancellation of a running job. Every node receives it, because any of them may run the job. Body: CancelRequest. */
  jobCancel: "job.cancel",
  /** A job's status, progress or logs changed. Body: JobChange. */
  jobChanged: "job.changed",
  /** A node follows a job, and needs its changes. Body: { id }. */
  jobFollowed: "job.followed",
  /** What happens, for those who read events. Body: EventMessage. */
  events: "events",
  schedulesChanged: "schedules.changed",
  /** For the node that handed jobs over. Body: HandoffAck. */
  handoffAck: (node: NodeName) => `job.handoff.ack.${node}`,
  /** For the worker that reported: its reports are stored. Body: Receipt. */
  receipts: (node: NodeName) => `job.receipt.${node}`,
  /** Body: WorkerHeartbeat. */
  workerHeartbeat: "worker.heartbeat",
  /** For the workers: dispatch queues that are in use. Body: Dispatching. */
  dispatching: "job.dispatching",
  /** Body: CoordinatorHeartbeat. */
  coordinatorHeartbeat: "coordinator.heartbeat",
} as const;

/** Whoever may connect to the database may listen and notify. What is secret, or is believed, comes on a channel that nobody else knows. */
export function isPrivate(topic: string): boolean {
  return topic.startsWith("job.given.");
}

export const queues = {
  /**
   * For the workers of a queue, or those of them that know the task. A queue may be called almost anything, so that a space, which no name
   * has, stands before the task. Body: Dispatch.
   */
  dispatch: (queue: string, task?: string) =>
    task === undefined ? `job.dispatch.${queue}` : `job.dispatch.${queue} ${task}`,
  /** The node that gets it owns the events of its jobs. Body: Assignment. */
  assigned: "job.assigned",
  /**
   * One for each assignment, consumed by its owner and then by the next one, exclusively. Logs are sent in it too: a result must not overtake
   * them. Body: StatusReport.
   */
  jobStatus: (assignment: AssignmentId) => `job.${assignment}.status`,
  /** Assignments that look for another owner. Body: Handoff. */
  handoff: "job.handoff",
} as const;

const DISPATCH = "job.dispatch.";

/** What a dispatch queue was made of; null for another name. */
export function dispatchRoute(name: string): DispatchRoute | null {
  if (!name.startsWith(DISPATCH)) return null;
  const space = name.indexOf(" ");
  if (space < 0) return { queue: name.slice(DISPATCH.length), task: null };
  return { queue: name.slice(DISPATCH.length, space), task: name.slice(space + 1) };
}

export function consumerName({ name, incarnation }: NodeIdentity): string {
  return `${name}.${incarnation}`;
}
