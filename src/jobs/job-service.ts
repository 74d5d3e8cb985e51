/** What callers do with jobs in the store of this node, and why a job waits. It does not run jobs; see run/worker.ts. */

import type { SubmitOptions, SubmitRequest, Submitter } from "./submit/submitter.ts";
import type { Channels } from "../channels/channels.ts";
import { topics } from "../channels/channel-names.ts";
import type { CancelRequest } from "../channels/messages.ts";
import type { AgentState } from "../core/agent.ts";
import type { JobId } from "../core/ids.ts";
import { FUNCTIONS_QUEUE, isSuspect, type Budgets, type Job, type JobStatus } from "../core/jobs/job.ts";
import { acceptsWork, type NodeInfo } from "../core/node.ts";
import type { BriefJob, JobPage, JobQuery, JobStore, Store, Submitted } from "../store/store.ts";
import type { Followers } from "./follow/followers.ts";
import type { TaskRegistry } from "./tasks/task-registry.ts";

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
    | "suspect"
    | "workers_busy"
    | "unknown_task"
    | "draining"
    | "no_worker";
  readonly message: string;
}

export interface Jobs extends Pick<JobStore, "result" | "runs" | "logs" | "cancel" | "retry" | "remove"> {
  /** All of them or none. Rejects with BAD_REQUEST or BAD_PAYLOAD and the field at fault. */
  submit(requests: readonly SubmitRequest[], options?: SubmitOptions): Promise<readonly Submitted[]>;
  get(id: JobId): Promise<JobView | null>;
  list(query: JobQuery): Promise<JobPage>;
  brief(query: JobQuery): Promise<JobPage<BriefJob>>;
  /** Yields at once, then whenever the job may have changed (and now and then regardless), until the signal. */
  changes(id: JobId, signal: AbortSignal): AsyncIterable<void>;
}

interface JobServiceOptions {
  readonly store: Store;
  readonly submitter: Submitter;
  readonly tasks: TaskRegistry;
  readonly channels: Channels;
  readonly watchers: Pick<Followers, "changed" | "changes">;
  /** What the local worker is up to, for the answer to "why does it wait?". */
  readonly worker: {
    readonly draining: boolean;
    readonly concurrency: number;
    readonly budgets: Budgets;
    readonly queues: ReadonlySet<string> | null;
  };
  /** The other nodes that live, for the same answer. */
  readonly others: () => readonly NodeInfo[];
  /** The agents that could lease from the store of this node, and those that could until lately. */
  readonly agents: () => Promise<readonly KnownAgent[]>;
  readonly onReady: () => void;
  /** A job has another status because of a caller: for those who follow it, and others. */
  readonly onChange: (id: JobId, status: JobStatus) => void;
}

interface KnownAgent {
  readonly capabilities: readonly string[];
  readonly state: AgentState;
}

export function jobService(options: JobServiceOptions): Jobs {
  const { store, submitter, channels, watchers, onReady, onChange } = options;
  return {
    submit: (requests, submitOptions) => submitter.submit(requests, submitOptions),
    get: async (id) => {
      const job = await store.jobs.get(id);
      return job && { ...job, waitingFor: await whyWaiting(job, options) };
    },
    result: (id) => store.jobs.result(id),
    list: (query) => store.jobs.list(query),
    brief: (query) => store.jobs.list(query, true),
    runs: (id) => store.jobs.runs(id),
    logs: (id, after, limit) => store.jobs.logs(id, after, limit),
    cancel: async (id, reason) => {
      const answer = await store.jobs.cancel(id, reason);
      if (answer.outcome === "requested") {
        const request: CancelRequest = { id, reason };
        // The request is in the store: a worker that misses this message reads it with the next renewal of its lease.
        await channels.publish(topics.jobCancel, [{ key: id, body: request }]).catch(() => {});
      }
      if (answer.outcome === "cancelled") onChange(id, "cancelled");
      else watchers.changed(id);
      return answer;
    },
    retry: async (id) => {
      const answer = await store.jobs.retry(id);
      if (answer === "retried") {
        onReady();
        onChange(id, "queued");
      }
      return answer;
    },
    remove: async (id) => {
      const answer = await store.jobs.remove(id);
      watchers.changed(id);
      return answer;
    },
    changes: (id, signal) => watchers.changes(id, signal),
  };
}

async function whyWaiting(job: Job, options: JobServiceOptions): Promise<WaitingReason | null> {
  if (job.status === "scheduled") {
    const at = new Date(job.runAt).toISOString();
    if (job.failures === 0) return { code: "not_due", message: `it is due at ${at}` };
    const message = `failure ${job.failures} of the ${job.maxAttempts} that it may have; the next one is at ${at}`;
    return { code: "retry_delay", message };
  }
  if (job.status !== "queued") return null;
  const { store, tasks, worker, others, agents } = options;
  const paused = await store.queues.isPaused(job.queue);
  return whyQueued(job, paused, tasks.names(), worker, others(), await agents());
}

/** The first thing that keeps a queued job from running, in the order in which a person would want to know. */
function whyQueued(
  job: Job,
  paused: boolean,
  tasks: ReadonlySet<string>,
  worker: JobServiceOptions["worker"],
  others: readonly NodeInfo[],
  agents: readonly KnownAgent[],
): WaitingReason {
  const { task, queue, crashes } = job;
  const because = (code: WaitingReason["code"], message: string): WaitingReason => ({ code, message });
  if (paused)
    return because("queue_paused", `queue ${queue} is paused; resume it with: baton queues resume ${queue}`);
  const able = agents.filter(({ capabilities }) => capabilities.includes(task));
  const runnable = others.some((node) => mayRun(node, job)) || able.some(({ state }) => state === "alive");
  if (!runnable) {
    const start = `start one with a task folder (--tasks) that has it`;
    if (!tasks.has(task) && able.length > 0)
      return because("no_worker", `no agent or worker that knows task ${task} is alive now; start one again`);
    if (!tasks.has(task)) return because("unknown_task", `no node and no agent knows task ${task}; ${start}`);
    if (worker.queues && !worker.queues.has(queue))
      return because("no_worker", `no worker serves queue ${queue}; add it to worker.queues`);
    if (worker.concurrency === 0)
      return because("no_worker", "this node runs no jobs; raise worker.concurrency or start another one");
    if (worker.draining) return because("draining", "the node is being stopped and takes no new jobs");
  }
  if (!isSuspect(crashes, worker.budgets))
    return because("workers_busy", "all workers are busy with jobs before it");
  const message = `a node died while it ran this job (${crashes} so far), so it waits until it can run without another such job beside it`;
  return because("suspect", message);
}

/** As far as a node tells: which queues it serves it does not. */
function mayRun(node: NodeInfo, job: Job): boolean {
  const role = job.queue === FUNCTIONS_QUEUE ? "function" : "worker";
  return acceptsWork(node) && node.roles.includes(role) && node.capabilities.includes(job.task);
}
