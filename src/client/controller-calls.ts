/** Client calls to the controller API under `/v1`. Without a leader, a write waits for one until the call times out. */

import type { AnswerOf, BodyOf, Parts, QueryOf, Route } from "../api/operation-table.ts";

type Call = <R extends Route>(route: R, parts: Parts<R>, timeoutMs?: number) => Promise<AnswerOf<R>>;
type Jobs = Extract<BodyOf<"POST /v1/jobs">, readonly unknown[]>;

/** What the API waits when it is not told, and what its answer may take beyond a wait. */
const POLL_MS = 25_000;
const POLL_SLACK_MS = 5_000;

export function controllerCalls(call: Call, keyed: (jobs: Jobs) => Jobs) {
  return {
    submit: (jobs: BodyOf<"POST /v1/jobs">) =>
      call("POST /v1/jobs", { body: Array.isArray(jobs) ? keyed(jobs) : keyed([jobs])[0]! }),
    job: (id: string) => call("GET /v1/jobs/{id}", { params: { id } }),
    jobs: (filter: QueryOf<"GET /v1/jobs"> = {}) => call("GET /v1/jobs", { query: filter }),
    /** Null when there was no work in time. */
    lease: (request: LeaseRequest) =>
      call("POST /v1/leases", { body: request }, (request.timeout_ms ?? POLL_MS) + POLL_SLACK_MS),
    renew: (request: RenewRequest) => call("POST /v1/leases/renew", { body: request }),
    /** Rejects with STALE_EPOCH when the job, or the leader, is another by now. */
    result: (result: ResultRequest) =>
      call("POST /v1/results", { body: result }) as Promise<ResultAnswerBody>,
    results: (results: readonly ResultRequest[]) =>
      call("POST /v1/results", { body: [...results] }) as Promise<ResultAnswerBody[]>,
    logs: (request: LogsRequest) => call("POST /v1/logs", { body: request }),
    agents: (query: QueryOf<"GET /v1/agents"> = {}) => call("GET /v1/agents", { query }),
    heartbeat: (request: HeartbeatRequest) => call("POST /v1/agents/heartbeat", { body: request }),
    removeAgent: (name: string) => call("DELETE /v1/agents/{agent_name}", { params: { agent_name: name } }),
  };
}

export type LeaseRequest = BodyOf<"POST /v1/leases">;
export type LeaseBody = NonNullable<AnswerOf<"POST /v1/leases">>;
export type LeasedTaskBody = LeaseBody["tasks"][number];
export type RenewRequest = BodyOf<"POST /v1/leases/renew">;
export type RenewedBody = AnswerOf<"POST /v1/leases/renew">;
export type LogsRequest = BodyOf<"POST /v1/logs">;
export type HeartbeatRequest = BodyOf<"POST /v1/agents/heartbeat">;

type One<T> = Exclude<T, readonly unknown[]>;

export type ResultRequest = One<BodyOf<"POST /v1/results">>;
export type ResultStatus = ResultRequest["status"];
export type ResultErrorBody = NonNullable<ResultRequest["error"]>;
/** Of one result: accepted, or refused with a code. */
export type ResultAnswerBody = One<AnswerOf<"POST /v1/results">>;
