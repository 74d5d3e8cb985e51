/**
 * What the operations of the API work with. `node.ts` builds the real thing; a test may hand in another.
 */

import type { Access } from "../access/access.ts";
import type { Leadership, Membership, NodeWish } from "../coordination/coordination.ts";
import type { Job, JobStatus } from "../core/job.ts";
import type { JobId, NodeName } from "../core/ids.ts";
import type { JobInput } from "../core/job-fields.ts";
import type { NodeIdentity, NodeInfo, NodeRole } from "../core/node.ts";
import type { Wants } from "../core/round-robin.ts";
import type { Schedule, MissedPolicy, OverlapPolicy } from "../core/schedule.ts";
import type { LeaderRole } from "../core/term.ts";
import type { WorkVerdict } from "../core/work-health.ts";
import type { Clock } from "../platform/clock.ts";
import type { JobRuns } from "../store/past-runs.ts";
import type {
  BriefPage,
  CancelAnswer,
  Guarantees,
  JobPage,
  JobQuery,
  LogLine,
  NotedOccurrence,
  QueueInfo,
  Submitted,
  TransactionClient,
} from "../store/store.ts";
import type { Outcome, Transport } from "../transport/transport.ts";
import type { JournalEntry, JournalKind, JournalQuery } from "../store/journal.ts";
import type { StoreLook } from "../cluster/store-look.ts";
import type { ShownSetting } from "../config/shown-settings.ts";
import type { Inbound } from "./hop.ts";
import type { ServerEvent } from "./operation.ts";
import type { OverviewBody } from "./overview-body.ts";
import type { ControllerApi } from "./controller-services.ts";

export interface NodeServices {
  readonly identity: NodeIdentity;
  readonly version: string;
  readonly startedAt: number;
  readonly clock: Clock;
  readonly guarantees: Guarantees;
  readonly roles: ReadonlySet<NodeRole>;
  readonly cluster: Cluster;
  readonly functions: Functions;
  readonly jobs: Jobs;
  readonly queues: Queues;
  readonly schedules: Schedules;
  readonly leadership: Leadership;
  readonly membership: Membership;
  readonly health: Health;
  readonly work: WorkHealth;
  readonly metrics: MetricsText;
  /** The tasks that this node can run. */
  readonly tasks: { list(): readonly TaskInfo[] };
  /** What happened to the cluster. */
  readonly journal: JournalService;
  /** What people want to know of the store; one look for all who ask. */
  readonly insight: { look(): Promise<StoreLook> };
  readonly live: LiveApi;
  readonly settings: { list(): readonly ShownSetting[] };
  /** What agents and callers do under `/v1`; left out by stand-ins only. */
  readonly controller?: ControllerApi;
  /** The way to the other nodes, where each keeps its own jobs; null or left out where nothing is ever passed on. */
  readonly peers?: Peers | null;
  /** Which node gets new jobs; with `peers` only. */
  readonly placement?: Placement | null;
  /** Tokens, users and sessions; left out by stand-ins only. */
  readonly access?: Pick<Access, "open" | "tokens" | "users" | "sessions" | "first">;
}

/** The cluster at a glance: one look a second, however many read. */
export interface LiveApi {
  overview(inbound: Inbound): Promise<OverviewBody>;
  follow(signal: AbortSignal): AsyncIterable<ServerEvent>;
}

export interface JournalService {
  /** Written in the background; never in the way of what it tells of. */
  note(note: {
    readonly kind: JournalKind;
    readonly actor?: string | null;
    readonly subject?: string | null;
    readonly detail?: Readonly<Record<string, unknown>>;
  }): void;
  /** Newest first. */
  list(query: JournalQuery): Promise<readonly JournalEntry[]>;
  /** What this node has told of since its start; refused writes each by itself. */
  counts(): Readonly<Record<JournalKind, number>>;
}

/** Addresses come from the view of the cluster alone, never from a request. */
export interface Peers extends Pick<Transport, "call" | "stream"> {
  /** For a request that is passed on, unless its caller waits less. */
  readonly requestTimeoutMs: number;
  /** Stands for this node's idea of who is in the cluster: nodes of differing ideas could send a request in circles. */
  configHash(): string;
  /** False while nodes that live have another idea of it than this one. */
  agreed(): boolean;
}

export interface Placement {
  /** Finds a node for new jobs and hands them over, or says that they stay here. Rejects with why nobody takes them. */
  place(request: PlacementRequest): Promise<Placed>;
  /** Jobs that another node took back, because they were placed elsewhere when no answer came from here. */
  readonly retracted: RetractedJobs;
  /** How many requests this node has placed on which, since its start. */
  placed(): Readonly<Record<string, number>>;
}

export interface PlacementRequest {
  readonly wants: Wants;
  /** The caller's own key for a single job. */
  readonly key: string | null;
  /** How many jobs it makes; null when it is not safe to try it twice. */
  readonly jobs: number | null;
  /** Whether this node comes first, if it can do it. */
  readonly prefersHere: boolean;
  /** As it came, with its query. */
  readonly path: string;
  readonly body: string;
  /** Those that may be passed on. */
  readonly headers: Readonly<Record<string, string>>;
  readonly deadlineMs: number;
}

export type Placed =
  | { readonly at: "here" }
  | { readonly at: "peer"; readonly node: NodeInfo; readonly reply: Extract<Outcome, { outcome: "reply" }> };

export interface RetractedJobs {
  /** Whether the batch with this first uuid was taken back already, so that it must not be stored any more. */
  has(first: string): boolean;
  /** Another request with the same key was answered with this job: it is not to be taken back any more. */
  confirm(id: JobId): void;
  takeBack(first: string, jobs: number): Promise<"gone" | "running" | "kept">;
}

export interface TaskInfo {
  readonly name: string;
  readonly isolation: "none" | "thread";
  readonly hasSchema: boolean;
  /** JSON Schema of the payload; null where there is none, or where it cannot be said in JSON Schema. */
  readonly schema: Readonly<Record<string, unknown>> | null;
}

/** As a caller writes it, apart from the spelling (core/job-fields.ts). `runAt` is wall time in ms, and excludes `delayMs`. */
export interface SubmitRequest extends JobInput {
  /** Chosen by the node that the caller spoke to; begins with the name of the node that stores it. */
  readonly id?: JobId;
}

export interface SubmitOptions {
  /**
   * A connection to the node's own PostgreSQL database with a transaction open: the jobs are committed or rolled back
   * with whatever else it does.
   */
  readonly client?: TransactionClient;
  /** The trace of whoever submits (core/trace.ts), unless one is active here: it goes with the jobs to whoever runs them. */
  readonly trace?: string | null;
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
  submit(requests: readonly SubmitRequest[], options?: SubmitOptions): Promise<readonly Submitted[]>;
  get(id: JobId): Promise<JobView | null>;
  result(id: JobId): Promise<string | null>;
  list(query: JobQuery): Promise<JobPage>;
  brief(query: JobQuery): Promise<BriefPage>;
  /** Runs that did not end the job. */
  runs(id: JobId): Promise<JobRuns>;
  logs(id: JobId, after: number, limit: number): Promise<readonly LogLine[]>;
  cancel(id: JobId, reason: string | null): Promise<CancelAnswer>;
  retry(id: JobId): Promise<JobStatus | "missing" | "retried">;
  remove(id: JobId): Promise<"removed" | "running" | "missing">;
  /** Yields at once, then whenever the job may have changed (and now and then regardless), until the signal. */
  changes(id: JobId, signal: AbortSignal): AsyncIterable<void>;
}

export interface Queues {
  list(): Promise<readonly QueueInfo[]>;
  /** Since when the oldest due job of each queue waits. */
  waitingSince(): Promise<ReadonlyMap<string, number>>;
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

export interface LeaderInfo {
  readonly role: LeaderRole;
  readonly node: NodeName;
  readonly incarnation: string;
  readonly epoch: number;
  readonly acquiredAt: number;
  readonly leaseUntil: number;
}

export interface ClusterFabric {
  /** Who keeps each port, as `postgres` or `redis`. */
  readonly coordination: string;
  readonly channels: string;
  readonly dispatch: "pull" | "push";
}

export interface ClusterInfo {
  readonly name: string;
  readonly totalNodes: number;
  readonly activeNodes: number;
  readonly drainingNodes: number;
  readonly deadNodes: number;
  readonly joiningNodes: number;
  readonly schedulerLeader: NodeName | null;
  readonly minimumNodes: number;
  /** Whether so many nodes have gathered that callers are served. */
  readonly formed: boolean;
  /** What holds it together. */
  readonly fabric: ClusterFabric;
  /** What people should know of how this cluster works. */
  readonly notes: readonly string[];
  /** What is not promised because of what holds it together. */
  readonly limits?: readonly string[];
}

export interface Cluster {
  info(): ClusterInfo;
  nodes(): readonly NodeInfo[];
  leaders(): Promise<readonly LeaderInfo[]>;
  /** False when there is no such node. */
  ask(node: NodeName, wish: NodeWish): Promise<boolean>;
  /** False when there is no such node. Rejects with BAD_REQUEST where nodes are not removed by hand. */
  remove(node: NodeName): Promise<boolean>;
  /** Newest first; samples that the metrics aggregator wrote. */
  metrics(limit: number): Promise<readonly ClusterSample[]>;
}

export interface ClusterSample {
  readonly at: number;
  readonly leaderEpoch: number;
  readonly nodes: number;
  readonly jobs: Readonly<Record<JobStatus, number>>;
  readonly finishedPerSecond: number;
  readonly load: {
    /** Shares between 0 and 1, the mean of the nodes. */
    readonly cpu: number;
    readonly memory: number;
    readonly loopLagMsMax: number;
    readonly running: number;
  };
}

export interface Functions {
  /** How long a call waits for a caller who does not say: the setting `functions.timeout`. */
  readonly timeoutMs: number;
  /** Runs a task for a caller who waits. */
  call(
    task: string,
    payload: unknown,
    options: { readonly timeoutMs: number } & Pick<SubmitOptions, "trace">,
  ): Promise<FunctionAnswer>;
}

export type FunctionAnswer =
  | { readonly ended: true; readonly job: Job; readonly result: string | null }
  /** The time was up first; the job goes on. */
  | { readonly ended: false; readonly id: JobId };

/** Whether a node does the work that it is there for; see core/work-health.ts. */
export interface WorkHealth {
  check(): Promise<WorkReport>;
}

export interface WorkReport extends WorkVerdict {
  readonly slots: number;
  readonly running: number;
  /** Jobs that are due in the queues that it serves; null when that is not known. */
  readonly ready: number | null;
  /** Since it last asked for jobs; null before the first time. */
  readonly lastClaimMs: number | null;
  readonly claimUnderWayMs: number | null;
}

/** What is measured here, as text for Prometheus. */
export interface MetricsText {
  readonly contentType: string;
  text(): Promise<string>;
}

export interface Health {
  readonly draining: boolean;
  /** Why callers are not served yet, as "2 of 3 nodes have gathered"; null once the cluster has formed. */
  readonly forming: string | null;
  /** Why only a restart will help; null while all is well. */
  readonly problem: string | null;
  /** Whether this node can do its work now: each check by name, with the reason when it fails. */
  ready(): Promise<{ ready: boolean; checks: Readonly<Record<string, { ok: boolean; reason?: string }>> }>;
}
