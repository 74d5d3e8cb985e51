/** What the operations under `/v1` work with: the controller of this node, which leads or refuses. */

import type { AgentState } from "../core/agent.ts";
import { BatonError } from "../core/errors.ts";
import type { JobId } from "../core/ids.ts";
import type { JobStatus } from "../core/job.ts";
import type { Agent } from "../store/agents.ts";
import type { ClaimedJob, NewLogLine, Renewal, Report, Submitted } from "../store/store.ts";
import type { Caller, ServerEvent } from "./operation.ts";
import type { NodeServices, SubmitOptions, SubmitRequest } from "./services.ts";

/** Every write rejects with NOT_LEADER unless this node leads, and names the epoch that it was made under. */
export interface ControllerApi {
  submit(
    requests: readonly SubmitRequest[],
    options?: Pick<SubmitOptions, "trace">,
  ): Promise<UnderEpoch<{ readonly jobs: readonly Submitted[] }>>;
  /** Null when there was no work in time. */
  lease(request: LeaseRequest, caller: Caller): Promise<Lease | null>;
  /** Rejects with STALE_EPOCH when the lease is not held any more, or is not that agent's. */
  renew(agent: string, lease: string): Promise<UnderEpoch<RenewedLease>>;
  /** One answer a result, in their order. */
  results(results: readonly AgentResult[]): Promise<readonly ResultAnswer[]>;
  /** How many lines were taken. Rejects with STALE_EPOCH. */
  report(report: AgentReport): Promise<number>;
  heartbeat(agent: Heartbeat): Promise<UnderEpoch<object>>;
  removeAgent(name: string): Promise<boolean>;
  agents(withRemoved: boolean): Promise<readonly AgentView[]>;
  /** Behind the event of this id, as far as it is kept; null for what happens from now on. */
  events(since: string | null, signal: AbortSignal): AsyncIterable<ServerEvent>;
}

export type UnderEpoch<Body> = Body & { readonly leaderEpoch: number };

/** What an agent tells of itself; what it leaves out stays as it was. */
export interface AgentSign {
  readonly name: string;
  readonly capabilities?: readonly string[];
  readonly version?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly running?: number;
}

/** Names of requests for leases whose answers never arrived: what was leased with them is nobody's. */
interface Unanswered {
  readonly unanswered?: readonly string[];
}

export interface Heartbeat extends AgentSign, Unanswered {}

export interface LeaseRequest extends Omit<AgentSign, "running">, Unanswered {
  readonly capabilities: readonly string[];
  readonly queues?: readonly string[];
  readonly limit: number;
  readonly timeoutMs: number;
  readonly leaderEpoch?: number;
  /** What the agent calls this request. */
  readonly request?: string;
}

export interface Lease {
  readonly id: string;
  readonly leaderEpoch: number;
  readonly leader: string;
  readonly leaseMs: number;
  readonly jobs: readonly ClaimedJob[];
}

export interface RenewedLease {
  readonly leaseMs: number;
  readonly cancelled: Renewal["cancelled"];
}

/** Which run somebody speaks of. An epoch that is missing is as good as an old one. */
export interface RunNamed {
  readonly job: JobId;
  readonly lease: string;
  readonly jobEpoch: number | null;
  readonly leaderEpoch: number | null;
}

export const RESULT_STATUSES = ["succeeded", "failed", "cancelled", "released"] as const;

export interface AgentResult extends RunNamed {
  readonly agent?: string;
  readonly status: (typeof RESULT_STATUSES)[number];
  readonly result?: unknown;
  readonly error?: {
    readonly message: string;
    readonly code?: string;
    readonly stack?: string;
    readonly retryable?: boolean;
  };
}

export type ResultAnswer =
  | {
      readonly accepted: true;
      readonly job: JobId;
      readonly status: JobStatus;
      readonly leaderEpoch: number;
      /** It had been accepted before: the first answer stands. */
      readonly replayed: boolean;
    }
  | { readonly accepted: false; readonly job: JobId; readonly refusal: ResultRefusal };

export interface ResultRefusal {
  readonly code: "STALE_EPOCH" | "NOT_FOUND";
  readonly message: string;
  /** The one that is not right: an agent whose `leader_epoch` is old renews its lease at the leader and posts again. */
  readonly field: "leader_epoch" | "job_epoch" | "lease_id" | "job_id";
  /** Of whoever leads, as last seen. */
  readonly leaderEpoch: number | null;
}

export interface AgentReport extends RunNamed {
  readonly lines: readonly (Omit<NewLogLine, "at"> & { readonly at: number | null })[];
  readonly progress: Report["progress"];
}

export interface AgentView extends Agent {
  readonly state: AgentState;
}

/** A node that serves the table has one; only a stand-in in a test may do without. */
export function controllerOf({ controller }: Pick<NodeServices, "controller">): ControllerApi {
  if (controller) return controller;
  throw new BatonError("STOPPED", "this node has no controller");
}
