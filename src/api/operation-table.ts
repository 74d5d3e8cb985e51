/**
 * The table of all operations: what the modules in `operations/` export. In the OpenAPI document and in the audit,
 * `getJob` is `get_job`.
 */

import type { DeclaredOperation, Operation } from "./operation.ts";
import * as access from "./operations/access/access.ts";
import * as cluster from "./operations/cluster/cluster.ts";
import * as journal from "./operations/cluster/journal.ts";
import * as leaderHistory from "./operations/cluster/leader-history.ts";
import * as nodeStatus from "./operations/cluster/node-status.ts";
import * as nodes from "./operations/cluster/nodes.ts";
import * as scaling from "./operations/cluster/scaling.ts";
import * as agents from "./operations/controller/agents.ts";
import * as controllerJobs from "./operations/controller/jobs.ts";
import * as leases from "./operations/controller/leases.ts";
import * as bulkJobs from "./operations/jobs/bulk-jobs.ts";
import * as callFunction from "./operations/jobs/call-function.ts";
import * as jobFailures from "./operations/jobs/job-failures.ts";
import * as jobLogs from "./operations/jobs/job-logs.ts";
import * as jobTimeline from "./operations/jobs/job-timeline.ts";
import * as jobs from "./operations/jobs/jobs.ts";
import * as queues from "./operations/jobs/queues.ts";
import * as submitJobs from "./operations/jobs/submit-jobs.ts";
import * as schedules from "./operations/schedules/schedules.ts";

const MODULES = [
  ...([submitJobs, jobs, jobLogs, jobTimeline, callFunction, queues, schedules] as const),
  ...([controllerJobs, leases, agents] as const),
  ...([cluster, nodes, leaderHistory, bulkJobs, jobFailures, journal] as const),
  ...([access, nodeStatus, scaling] as const),
] as const;

type Exported<Module> = Module extends unknown ? Module[keyof Module] : never;

export type Row = Extract<Exported<(typeof MODULES)[number]>, DeclaredOperation>;

export const OPERATIONS: readonly Operation[] = MODULES.flatMap((module) =>
  Object.entries<unknown>(module).flatMap(([name, exported]) =>
    exported instanceof Object && "handler" in exported
      ? [{ ...(exported as DeclaredOperation), name: snakeCase(name) }]
      : [],
  ),
);

function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

export type Route = Row["route"];
export type RowAt<R extends Route> = Extract<Row, { readonly route: R }>;

type Schemas<R> =
  R extends DeclaredOperation<Route, infer P, infer Q, infer B, infer Replies>
    ? { params: P; query: Q; body: B; replies: Replies }
    : never;

type Written<S> = S extends { _zod: { input: infer I } } ? I : undefined;
type Read<S> = S extends { _zod: { output: infer O } } ? O : undefined;

export type ParamsOf<R extends Route> = Written<Schemas<RowAt<R>>["params"]>;
export type QueryOf<R extends Route> = Written<Schemas<RowAt<R>>["query"]>;
export type BodyOf<R extends Route> = Written<Schemas<RowAt<R>>["body"]>;
export interface Parts<R extends Route> {
  readonly params?: ParamsOf<R>;
  readonly query?: QueryOf<R>;
  readonly body?: BodyOf<R>;
}

export type AnswerOf<R extends Route> = Read<
  Schemas<RowAt<R>>["replies"][keyof Schemas<RowAt<R>>["replies"]]
>;
