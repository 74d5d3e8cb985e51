/** The table of all operations. */

import type { Method, Operation } from "./operation.ts";
import { bulkJobs } from "./operations/jobs/bulk-jobs.ts";
import {
  getCluster,
  getLeaders,
  getMetrics,
  followCluster,
  getOverview,
} from "./operations/cluster/cluster.ts";
import { clusterJobs } from "./operations/jobs/cluster-jobs.ts";
import { drainNode, getNode, listNodes, removeNode, resumeNode } from "./operations/cluster/nodes.ts";
import { getFailures } from "./operations/jobs/job-failures.ts";
import { callFunction } from "./operations/jobs/call-function.ts";
import { health, healthz, livez, readyz, role, workz, prometheus } from "./operations/cluster/node-status.ts";
import { getLogs } from "./operations/jobs/job-logs.ts";
import { getJournal } from "./operations/cluster/journal.ts";
import { getLeaderHistory } from "./operations/cluster/leader-history.ts";
import { cancelJob, deleteJob, getJob, getResult, listJobs, retryJob } from "./operations/jobs/jobs.ts";
import { listTasks, status, getSettings } from "./operations/cluster/node-status.ts";
import { getLocalMetrics, getMetricsSummary } from "./operations/cluster/placement-metrics.ts";
import { listQueues, pauseQueue, resumeQueue } from "./operations/jobs/queues.ts";
import { previewSchedule, previewTiming, scheduleHistory } from "./operations/schedules/schedules.ts";
import {
  deleteSchedule,
  getSchedule,
  listSchedules,
  pauseSchedule,
  postSchedule,
  putSchedule,
  resumeSchedule,
  triggerSchedule,
} from "./operations/schedules/schedules.ts";
import { login, logout, whoAmI } from "./operations/access/session.ts";
import { getScaling } from "./operations/cluster/scaling.ts";
import { getTimeline } from "./operations/jobs/job-timeline.ts";
import { submitJobs } from "./operations/jobs/submit-jobs.ts";
import { createToken, listTokens, revokeToken } from "./operations/access/tokens.ts";
import { addUser, listUsers, removeUser, setPassword } from "./operations/access/users.ts";
import { v1AgentHeartbeat, v1Events, v1ListAgents, v1RemoveAgent } from "./operations/controller/agents.ts";
import { v1GetJob, v1ListJobs, v1SubmitJobs } from "./operations/controller/jobs.ts";
import { v1Lease, v1PostLogs, v1PostResults, v1RenewLease } from "./operations/controller/leases.ts";

export const OPERATIONS = [
  submitJobs,
  getJob,
  getResult,
  getLogs,
  getTimeline,
  cancelJob,
  retryJob,
  deleteJob,
  listJobs,
  callFunction,
  listQueues,
  pauseQueue,
  resumeQueue,
  listSchedules,
  postSchedule,
  previewTiming,
  getSchedule,
  putSchedule,
  deleteSchedule,
  pauseSchedule,
  resumeSchedule,
  triggerSchedule,
  previewSchedule,
  scheduleHistory,
  v1SubmitJobs,
  v1ListJobs,
  v1GetJob,
  v1Lease,
  v1RenewLease,
  v1PostResults,
  v1PostLogs,
  v1ListAgents,
  v1AgentHeartbeat,
  v1RemoveAgent,
  v1Events,
  getCluster,
  getOverview,
  followCluster,
  listNodes,
  getNode,
  drainNode,
  resumeNode,
  removeNode,
  getLeaders,
  getLeaderHistory,
  getMetrics,
  getLocalMetrics,
  getMetricsSummary,
  clusterJobs,
  bulkJobs,
  getFailures,
  getJournal,
  whoAmI,
  login,
  logout,
  listTokens,
  createToken,
  revokeToken,
  listUsers,
  addUser,
  setPassword,
  removeUser,
  health,
  healthz,
  livez,
  readyz,
  workz,
  prometheus,
  getScaling,
  role,
  status,
  listTasks,
  getSettings,
] as const;

// ---------------------------------------------------------------- types for whoever calls the table from outside

export type Row = (typeof OPERATIONS)[number];

type RouteOf<R> = R extends { method: infer M extends Method; path: infer P extends string }
  ? `${M} ${P}`
  : never;

/** `"GET /jobs/{id}"` and so on. */
export type Route = RouteOf<Row>;

export type RowAt<R extends Route> = Row extends infer Each
  ? Each extends Row
    ? RouteOf<Each> extends R
      ? Each
      : never
    : never
  : never;

type Schemas<R> =
  R extends Operation<string, Method, string, infer P, infer Q, infer B, infer Replies>
    ? { params: P; query: Q; body: B; replies: Replies }
    : never;

type Written<S> = S extends { _zod: { input: infer I } } ? I : undefined;
type Read<S> = S extends { _zod: { output: infer O } } ? O : undefined;

export type ParamsOf<R extends Route> = Written<Schemas<RowAt<R>>["params"]>;
export type QueryOf<R extends Route> = Written<Schemas<RowAt<R>>["query"]>;
export type BodyOf<R extends Route> = Written<Schemas<RowAt<R>>["body"]>;
/** What a request of a route is made of. */
export interface Parts<R extends Route> {
  readonly params?: ParamsOf<R>;
  readonly query?: QueryOf<R>;
  readonly body?: BodyOf<R>;
}

/** What is answered when the request is not refused. */
export type AnswerOf<R extends Route> = Read<
  Schemas<RowAt<R>>["replies"][keyof Schemas<RowAt<R>>["replies"]]
>;
