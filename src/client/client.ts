/**
 * The typed client of a node. Bodies are as they travel, in snake_case. Routes and types are checked against the table
 * of operations when this file is compiled; at run time nothing of the server is loaded.
 */

import type { JobBody } from "../api/job-body.ts";
import type { JobRequestBody, SubmittedBody } from "../api/operations/submit.ts";
import type { NamedScheduleRequest, PreviewRequest } from "../api/schedule-body.ts";
import type { AnswerOf, Parts, QueryOf, Route } from "../api/table.ts";
import { systemClock } from "../platform/clock.ts";
import { address } from "./address.ts";
import { ClusterCalls } from "./cluster.ts";
import { ControllerCalls } from "./controller.ts";
import type { Clock } from "../platform/clock.ts";
import { UndiciConnection } from "./connection.ts";
import type { Answer, Connection } from "./connection.ts";
import { BatonClientError } from "./error.ts";
import { follow } from "./follow.ts";
import type { FollowEvent } from "./follow.ts";

export { BatonClientError } from "./error.ts";
export type { ClientErrorCode } from "./error.ts";
export type { FollowEvent } from "./follow.ts";
export { LeaderConnection } from "./leader.ts";
export type { LeaderAnswer, LeaderCall, LeaderConnectionOptions } from "./leader.ts";
export type * from "./controller-bodies.ts";
export type { JobBody, JobSummaryBody, LogLineBody } from "../api/job-body.ts";
export type { NodeBody } from "../api/node-body.ts";
export type { ClusterBody, LeaderBody, SampleBody } from "../api/operations/cluster.ts";
export type { LogsBody } from "../api/operations/job-logs.ts";
export type { QueueBody } from "../api/operations/queues.ts";
export type { StoredScheduleBody } from "../api/operations/schedules.ts";
export type { JobRequestBody, SubmittedBody } from "../api/operations/submit.ts";
export type {
  NamedScheduleRequest,
  OccurrenceBody,
  PreviewRequest,
  ScheduleBody,
} from "../api/schedule-body.ts";

export interface BatonClientOptions {
  /** As `http://127.0.0.1:8420`. */
  readonly url: string;
  /** For each call, until the last byte of its answer. */
  readonly timeoutMs?: number;
  readonly clock?: Clock;
  /** How the node is reached; over HTTP unless told otherwise. */
  readonly connection?: Connection;
}

export interface FollowLogsOptions {
  /** Only lines behind this sequence number. */
  readonly after?: number;
  readonly signal?: AbortSignal;
  /** How long to go on trying while the node cannot be reached. */
  readonly giveUpAfterMs?: number;
}

export interface WaitOptions {
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

/** `result` is null unless the job is completed. */
export interface Finished {
  readonly job: JobBody;
  readonly result: unknown;
}

export interface CallOptions {
  /** How long to wait for the result; the client's own time-out unless told otherwise. */
  readonly timeoutMs?: number;
}

const TIMEOUT_MS = 30_000;
const GIVE_UP_AFTER_MS = 30_000;
/** What the node's answer may take beyond the wait that was asked for. Smaller, and a busy node looks like a silent one. */
const ANSWER_SLACK_MS = 5_000;

export class BatonClient implements AsyncDisposable {
  readonly cluster: ClusterCalls;
  readonly controller: ControllerCalls;
  readonly #connection: Connection;
  readonly #timeoutMs: number;
  readonly #clock: Clock;

  constructor(options: BatonClientOptions) {
    this.#clock = options.clock ?? systemClock;
    this.#timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
    this.#connection = options.connection ?? new UndiciConnection(options.url, this.#clock);
    this.cluster = new ClusterCalls((route, parts) => this.#call(route, parts));
    this.controller = new ControllerCalls((route, parts, timeout) => this.#call(route, parts, timeout));
  }

  // ---------------------------------------------------------------- jobs

  async submit(job: JobRequestBody): Promise<SubmittedBody> {
    return (await this.#call("POST /jobs", { body: job })) as SubmittedBody;
  }

  async submitMany(jobs: readonly JobRequestBody[]): Promise<SubmittedBody[]> {
    return (await this.#call("POST /jobs", { body: [...jobs] })) as SubmittedBody[];
  }

  /**
   * Runs a task and waits for its result. Rejects with FUNCTION_FAILED, or with TIMEOUT when it takes longer: then the job
   * goes on, and the error's body has its id.
   */
  async call(task: string, payload?: unknown, options: CallOptions = {}) {
    const timeoutMs = options.timeoutMs ?? this.#timeoutMs;
    const parts = { params: { task }, query: { timeout_ms: timeoutMs }, body: payload ?? null };
    const answer = await this.#call("POST /functions/{task}", parts, timeoutMs + ANSWER_SLACK_MS);
    if (!("status" in answer)) return answer;
    throw new BatonClientError(
      "TIMEOUT",
      `${task} was not finished within ${timeoutMs} ms; job ${answer.job_id} goes on`,
      { status: 202, body: answer },
    );
  }

  job(id: string) {
    return this.#call("GET /jobs/{id}", { params: { id } });
  }

  /** Rejects with NOT_FINISHED, or with NO_RESULT for a job that failed or was cancelled. */
  result(id: string) {
    return this.#call("GET /jobs/{id}/result", { params: { id } });
  }

  /** Until the job is finished, however it ends. Rejects with TIMEOUT; the job is not touched by that. */
  async wait(id: string, options: WaitOptions = {}): Promise<Finished> {
    const stop = new AbortController();
    const forward = (): void => stop.abort();
    options.signal?.addEventListener("abort", forward, { once: true });
    if (options.signal?.aborted) forward();
    const callOff = options.timeoutMs === undefined ? null : this.#clock.after(options.timeoutMs, forward);
    let ended = false;
    try {
      for await (const event of this.followLogs(id, {
        after: Number.MAX_SAFE_INTEGER,
        signal: stop.signal,
      })) {
        ended ||= event.event === "end";
      }
    } finally {
      callOff?.();
      options.signal?.removeEventListener("abort", forward);
    }
    if (!ended) {
      options.signal?.throwIfAborted();
      throw new BatonClientError(
        "TIMEOUT",
        `job ${id} was not finished within ${options.timeoutMs} ms; it goes on`,
      );
    }
    const job = await this.job(id);
    const result = job.status === "completed" ? (await this.result(id)).result : null;
    return { job, result };
  }

  logs(id: string, options: { after?: number; limit?: number } = {}) {
    return this.#call("GET /jobs/{id}/logs", { params: { id }, query: options });
  }

  /** Log lines and progress as they happen, across broken connections, until the job is finished. */
  followLogs(id: string, options: FollowLogsOptions = {}): AsyncIterable<FollowEvent> {
    return follow({
      open: (after, signal) => this.#openLogs(id, after, signal),
      after: options.after ?? 0,
      signal: options.signal,
      giveUpAfterMs: options.giveUpAfterMs ?? GIVE_UP_AFTER_MS,
      clock: this.#clock,
    });
  }

  cancel(id: string, reason?: string) {
    return this.#call("POST /jobs/{id}/cancel", { params: { id }, body: { reason } });
  }

  retry(id: string) {
    return this.#call("POST /jobs/{id}/retry", { params: { id } });
  }

  remove(id: string) {
    return this.#call("DELETE /jobs/{id}", { params: { id } });
  }

  jobs(filter: QueryOf<"GET /admin/jobs"> = {}) {
    return this.#call("GET /admin/jobs", { query: filter });
  }

  // ---------------------------------------------------------------- queues

  queues() {
    return this.#call("GET /queues", {});
  }

  pauseQueue(name: string) {
    return this.#call("POST /queues/{name}/pause", { params: { name } });
  }

  resumeQueue(name: string) {
    return this.#call("POST /queues/{name}/resume", { params: { name } });
  }

  // ---------------------------------------------------------------- schedules

  schedules() {
    return this.#call("GET /schedules", {});
  }

  schedule(name: string) {
    return this.#call("GET /schedules/{name}", { params: { name } });
  }

  putSchedule(definition: NamedScheduleRequest) {
    return this.#call("PUT /schedules/{name}", { params: { name: definition.name }, body: definition });
  }

  removeSchedule(name: string) {
    return this.#call("DELETE /schedules/{name}", { params: { name } });
  }

  pauseSchedule(name: string) {
    return this.#call("POST /schedules/{name}/pause", { params: { name } });
  }

  resumeSchedule(name: string) {
    return this.#call("POST /schedules/{name}/resume", { params: { name } });
  }

  triggerSchedule(name: string) {
    return this.#call("POST /schedules/{name}/trigger", { params: { name } });
  }

  /** Of a timing that is not stored; see `previewStored`. */
  previewSchedule(timing: PreviewRequest) {
    return this.#call("POST /schedules/preview", { body: timing });
  }

  previewStored(name: string, count?: number) {
    return this.#call("GET /schedules/{name}/preview", { params: { name }, query: { count } });
  }

  scheduleHistory(name: string, limit?: number) {
    return this.#call("GET /schedules/{name}/history", { params: { name }, query: { limit } });
  }

  // ---------------------------------------------------------------- node

  health() {
    return this.#call("GET /health", {});
  }

  role() {
    return this.#call("GET /role", {});
  }

  status() {
    return this.#call("GET /status", {});
  }

  tasks() {
    return this.#call("GET /tasks", {});
  }

  async close(): Promise<void> {
    await this.#connection.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  // ---------------------------------------------------------------- calls

  async #call<R extends Route>(
    route: R,
    parts: Parts<R>,
    timeoutMs: number = this.#timeoutMs,
  ): Promise<AnswerOf<R>> {
    const { method, path } = address(route, parts);
    const body = parts.body === undefined ? undefined : JSON.stringify(parts.body);
    const answer = await this.#connection.call({ method, path, body }, timeoutMs);
    if (answer.status >= 400) throw refusal(answer);
    return (answer.status === 204 ? null : parsed(answer)) as AnswerOf<R>;
  }

  async #openLogs(id: string, after: number, signal: AbortSignal): Promise<AsyncIterable<string>> {
    const { method, path } = address("GET /jobs/{id}/logs", { params: { id }, query: { after } });
    const call = { method, path, headers: { accept: "text/event-stream" } };
    const { status, chunks } = await this.#connection.open(call, this.#timeoutMs, signal);
    if (status < 400) return chunks;
    let body = "";
    for await (const chunk of chunks) body += chunk;
    throw refusal({ status, body });
  }
}

function parsed(answer: Answer): unknown {
  try {
    return JSON.parse(answer.body);
  } catch (error) {
    throw new BatonClientError("BAD_REPLY", "what answered is not a Baton node: its reply is not JSON", {
      status: answer.status,
      body: answer.body.slice(0, 1_000),
      cause: error,
    });
  }
}

function refusal(answer: Answer): BatonClientError {
  const body = parsed(answer) as { error?: unknown; message?: unknown; leader_url?: unknown } | null;
  if (body?.error === "NOT_LEADER" && body.message === undefined) {
    // The one refusal without a message: its fields are fixed.
    const leader = typeof body.leader_url === "string" ? body.leader_url : "it is not known which one does";
    return new BatonClientError("NOT_LEADER", `this node does not lead (${leader})`, {
      status: answer.status,
      body,
    });
  }
  if (typeof body?.error !== "string" || typeof body.message !== "string") {
    return new BatonClientError("BAD_REPLY", `what answered (${answer.status}) is not a Baton node`, {
      status: answer.status,
      body,
    });
  }
  return new BatonClientError(body.error, body.message, { status: answer.status, body });
}
