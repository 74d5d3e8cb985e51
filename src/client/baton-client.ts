/** The typed client of a cluster: it calls any node and switches to another when one fails. It loads no code of the server. */

import type { JobBody } from "../api/bodies/job-body.ts";
import type { LogsBody } from "../api/operations/jobs/job-logs.ts";
import type { JobRequestBody, SubmittedBody } from "../api/operations/jobs/submit-jobs.ts";
import type { NamedScheduleRequest, PreviewRequest } from "../api/bodies/schedule-body.ts";
import type { AnswerOf, Parts, QueryOf, Route } from "../api/operation-table.ts";
import { type Clock, systemClock } from "../platform/clock.ts";
import { Deadline } from "../platform/loop.ts";
import { type Random, systemRandom } from "../platform/random.ts";
import { repeatOf, routePath } from "./route-request.ts";
import { addressesOf, DEFAULT_URL } from "./connection/node-list.ts";
import { accessCalls, clusterCalls } from "./cluster-calls.ts";
import { ClusterConnection } from "./connection/cluster-connection.ts";
import { type Connection, HttpConnection } from "./connection/connection.ts";
import { controllerCalls } from "./controller-calls.ts";
import { CallError, refusalOf } from "./client-error.ts";
import { eventStream, type ClusterEvent } from "./streams/cluster-events.ts";
import { jobStream, type FollowEvent } from "./streams/follow-job.ts";
import { resumed, type StreamOptions } from "./streams/resumable-stream.ts";
export { CallError } from "./client-error.ts";
export type { ClusterEvent } from "./streams/cluster-events.ts";
export type { FollowEvent } from "./streams/follow-job.ts";
export type { LiveEvent } from "./cluster-calls.ts";
export type * from "./controller-calls.ts";
export type { StreamOptions } from "./streams/resumable-stream.ts";
export type { JobBody, JobSummaryBody, LogLineBody } from "../api/bodies/job-body.ts";
export type { JournalEntryBody } from "../api/operations/cluster/journal.ts";
export type { NodeBody } from "../api/operations/cluster/nodes.ts";
export type { AlertBody, OverviewBody } from "../api/overview.ts";
export type { ClusterBody, LeaderBody, SampleBody } from "../api/operations/cluster/cluster.ts";
export type { LogsBody } from "../api/operations/jobs/job-logs.ts";
export type { QueueBody } from "../api/operations/jobs/queues.ts";
export type { StoredScheduleBody } from "../api/operations/schedules/schedules.ts";
export type { JobRequestBody, SubmittedBody } from "../api/operations/jobs/submit-jobs.ts";
export type {
  NamedScheduleRequest,
  OccurrenceBody,
  PreviewRequest,
  ScheduleBody,
} from "../api/bodies/schedule-body.ts";

/** Not every runtime has a `process`. */
const environment: Readonly<Record<string, string | undefined>> = globalThis.process?.env ?? {};

const TIMEOUT_MS = 30_000;
/** What the node's answer may take beyond the wait that was asked for. Smaller, and a busy node looks like a silent one. */
const ANSWER_SLACK_MS = 5_000;

export interface BatonClientOptions {
  /** Some nodes, also as one text with commas; one that is up is enough. `BATON_URL`, or this machine, unless told otherwise. */
  readonly urls?: string | readonly string[];
  readonly url?: string;
  /** Sent as `Authorization: Bearer`; `BATON_TOKEN` unless told otherwise. Null sends none. */
  readonly token?: string | null;
  /** For each call, over all its tries, until the last byte of its answer. */
  readonly timeoutMs?: number;
  /** False: only the given nodes are used, also when they tell of others. */
  readonly discover?: boolean;
  /** False: each call is tried once, at the first node, and what became of it is told at once. */
  readonly retry?: boolean;
  readonly clock?: Clock;
  readonly random?: Random;
  /** How a node is reached; over HTTP unless told otherwise. */
  readonly connect?: (url: string) => Connection;
}

export interface FollowLogsOptions extends StreamOptions {
  /** Only lines behind this sequence number. */
  readonly after?: number;
}

export interface PageOfLogsOptions {
  /** Only lines behind this sequence number. */
  readonly after?: number;
  readonly limit?: number;
  readonly follow?: false;
}

export interface WatchEventsOptions extends StreamOptions {
  /** Goes on behind the event with this id; what happens from now on unless told otherwise. */
  readonly after?: string;
}

export interface WaitOptions {
  /** For as long as it takes unless told otherwise. */
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

export interface QueueOptions {
  /** Also a queue that has had no job so far. */
  readonly allowUnknown?: boolean | undefined;
}

function queueBody({ allowUnknown }: QueueOptions = {}) {
  return allowUnknown === undefined ? undefined : { allow_unknown: allowUnknown };
}

export class BatonClient implements AsyncDisposable {
  readonly cluster: ReturnType<typeof clusterCalls>;
  readonly controller: ReturnType<typeof controllerCalls>;
  readonly access: ReturnType<typeof accessCalls>;
  readonly #connection: ClusterConnection;
  readonly #timeoutMs: number;
  readonly #retry: boolean;
  readonly #clock: Clock;
  readonly #random: Random;

  constructor(options: BatonClientOptions = {}) {
    const { clock = systemClock, random = systemRandom, discover = true, retry = true } = options;
    const { token = environment["BATON_TOKEN"] || null } = options;
    this.#clock = clock;
    this.#random = random;
    this.#retry = retry;
    this.#timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
    this.#connection = new ClusterConnection(
      { clock, random },
      {
        urls: addressesOf(options.urls ?? options.url ?? (environment["BATON_URL"] || DEFAULT_URL)),
        connect: options.connect ?? ((url) => new HttpConnection(url, clock, token ?? undefined)),
        discover: discover && retry,
        retry,
      },
    );
    const openLive = (signal: AbortSignal) => this.#open("GET /cluster/live", {}, signal);
    const call = this.request.bind(this);
    this.cluster = clusterCalls(call, (read, live) =>
      resumed({ open: openLive, read, endedEarly: "the node ended the stream" }, live, clock),
    );
    this.access = accessCalls(call);
    this.controller = controllerCalls(call, (jobs) => this.#keyed(jobs));
  }

  /** The nodes that it knows: those that were given, and those that these have told of. */
  get nodes(): readonly string[] {
    return this.#connection.nodes.list.known;
  }

  get node(): string | null {
    return this.#connection.nodes.list.current;
  }

  /** A job without an idempotency key gets one, so that a try whose answer was lost can be repeated and does not make two jobs. */
  async submit(job: JobRequestBody): Promise<SubmittedBody> {
    const [keyed] = this.#keyed([job]);
    return (await this.request("POST /jobs", { body: keyed! })) as SubmittedBody;
  }

  /** All of them or none; keys as with `submit`. */
  async submitMany(jobs: readonly JobRequestBody[]): Promise<SubmittedBody[]> {
    return (await this.request("POST /jobs", { body: this.#keyed(jobs) })) as SubmittedBody[];
  }

  /** Rejects with FUNCTION_FAILED, or with TIMEOUT when it takes longer: then the job goes on, and the error's body has its id. */
  async call(task: string, payload?: unknown, options: CallOptions = {}) {
    const timeoutMs = options.timeoutMs ?? this.#timeoutMs;
    const parts = { params: { task }, query: { timeout_ms: timeoutMs }, body: payload ?? null };
    const answer = await this.request("POST /functions/{task}", parts, timeoutMs + ANSWER_SLACK_MS);
    if (!("status" in answer)) return answer;
    throw new CallError(
      "TIMEOUT",
      `${task} was not finished within ${timeoutMs} ms; job ${answer.job_id} goes on`,
      { status: 202, body: answer },
    );
  }

  readonly job = (id: string) => this.request("GET /jobs/{id}", { params: { id } });

  /** Rejects with NOT_FINISHED, or with NO_RESULT for a job that failed or was cancelled. */
  readonly result = (id: string) => this.request("GET /jobs/{id}/result", { params: { id } });

  /** Until the job is finished, however it ends and whichever node dies. Rejects with TIMEOUT, which does not touch the job. */
  async wait(id: string, options: WaitOptions = {}): Promise<Finished> {
    const { timeoutMs, signal } = options;
    const until = this.#clock.monotonic() + (timeoutMs ?? Infinity);
    using limit = timeoutMs === undefined ? null : new Deadline(this.#clock, timeoutMs);
    const either = AbortSignal.any([signal, limit?.signal].filter((each) => each !== undefined));
    const follow = { after: Number.MAX_SAFE_INTEGER, signal: either };
    let ended = false;
    for await (const event of this.followLogs(id, follow)) ended ||= event.event === "end";
    if (!ended) {
      signal?.throwIfAborted();
      throw new CallError("TIMEOUT", `job ${id} was not finished within ${timeoutMs} ms; it goes on`);
    }
    const leftMs = (): number => Math.min(this.#timeoutMs, Math.max(until - this.#clock.monotonic(), 1_000));
    const job = await this.request("GET /jobs/{id}", { params: { id } }, leftMs());
    if (job.status !== "completed") return { job, result: null };
    const { result } = await this.request("GET /jobs/{id}/result", { params: { id } }, leftMs());
    return { job, result };
  }

  /** A page of them, or with `follow` all of them and what is still to come. */
  logs(id: string, options?: PageOfLogsOptions): Promise<LogsBody>;
  logs(id: string, options: FollowLogsOptions & { readonly follow: true }): AsyncIterable<FollowEvent>;
  logs(
    id: string,
    options: PageOfLogsOptions | (FollowLogsOptions & { readonly follow: true }) = {},
  ): Promise<LogsBody> | AsyncIterable<FollowEvent> {
    if (options.follow) return this.followLogs(id, options);
    const { after, limit } = options;
    return this.request("GET /jobs/{id}/logs", { params: { id }, query: { after, limit } });
  }

  /** Log lines and progress as they happen, across broken connections and the death of nodes, until the job is finished. */
  followLogs(id: string, options: FollowLogsOptions = {}): AsyncIterable<FollowEvent> {
    const open = (after: number, signal: AbortSignal) =>
      this.#open("GET /jobs/{id}/logs", { params: { id }, query: { after } }, signal);
    return resumed(jobStream(open, options.after ?? 0), options, this.#clock);
  }

  /** From any node: `hello` after each connection, `gap` where events are missing. A hint to look, never the only copy of a fact. */
  events(options: WatchEventsOptions = {}): AsyncIterable<ClusterEvent> {
    const open = (after: string | null, signal: AbortSignal) =>
      this.#open("GET /v1/events", { query: after === null ? {} : { since: after } }, signal);
    return resumed(eventStream(open, options.after ?? null), options, this.#clock);
  }

  readonly cancel = (id: string, reason?: string) =>
    this.request("POST /jobs/{id}/cancel", { params: { id }, body: { reason } });
  readonly retry = (id: string) => this.request("POST /jobs/{id}/retry", { params: { id } });
  readonly remove = (id: string) => this.request("DELETE /jobs/{id}", { params: { id } });

  readonly timeline = (id: string) => this.request("GET /jobs/{id}/timeline", { params: { id } });

  readonly settings = () => this.request("GET /node/settings");

  readonly jobs = (filter: QueryOf<"GET /admin/jobs"> = {}) =>
    this.request("GET /admin/jobs", { query: filter });

  readonly queues = () => this.request("GET /queues");
  readonly pauseQueue = (name: string, options?: QueueOptions) =>
    this.request("POST /queues/{name}/pause", { params: { name }, body: queueBody(options) });
  readonly resumeQueue = (name: string, options?: QueueOptions) =>
    this.request("POST /queues/{name}/resume", { params: { name }, body: queueBody(options) });

  readonly schedules = () => this.request("GET /schedules");
  readonly schedule = (name: string) => this.request("GET /schedules/{name}", { params: { name } });
  readonly putSchedule = (definition: NamedScheduleRequest) =>
    this.request("PUT /schedules/{name}", { params: { name: definition.name }, body: definition });
  readonly removeSchedule = (name: string) => this.request("DELETE /schedules/{name}", { params: { name } });
  readonly pauseSchedule = (name: string) =>
    this.request("POST /schedules/{name}/pause", { params: { name } });
  readonly resumeSchedule = (name: string) =>
    this.request("POST /schedules/{name}/resume", { params: { name } });
  readonly triggerSchedule = (name: string) =>
    this.request("POST /schedules/{name}/trigger", { params: { name } });

  /** Of a timing that is not stored; see `previewStored`. */
  readonly previewSchedule = (timing: PreviewRequest) =>
    this.request("POST /schedules/preview", { body: timing });
  readonly previewStored = (name: string, count?: number) =>
    this.request("GET /schedules/{name}/preview", { params: { name }, query: { count } });
  readonly scheduleHistory = (name: string, limit?: number) =>
    this.request("GET /schedules/{name}/history", { params: { name }, query: { limit } });

  readonly health = () => this.request("GET /health");
  readonly role = () => this.request("GET /role");
  readonly status = () => this.request("GET /status");

  /** Rejects with the status 503 while it is not. */
  readonly ready = () => this.request("GET /readyz");
  readonly tasks = () => this.request("GET /tasks");

  /** What is under way rejects with CLOSED. */
  close(): Promise<void> {
    return this.#connection.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Any row of the table, by its method and path; the others are shorter ways to write it. */
  async request<R extends Route>(
    route: R,
    parts: Parts<R> = {},
    timeoutMs: number = this.#timeoutMs,
  ): Promise<AnswerOf<R>> {
    const { method, path } = routePath(route, parts);
    const answer = await this.#connection.call({
      method,
      path,
      body: parts.body === undefined ? undefined : JSON.stringify(parts.body),
      timeoutMs,
      repeat: repeatOf(route, parts.body),
      leader: method !== "GET" && path.startsWith("/v1/"),
    });
    if (answer.status >= 400) throw refusalOf(answer);
    return answer.json as AnswerOf<R>;
  }

  async #open<R extends Route>(
    route: R,
    parts: Parts<R>,
    signal: AbortSignal,
  ): Promise<AsyncIterable<string>> {
    const call = { ...routePath(route, parts), headers: { accept: "text/event-stream" } };
    const { chunks } = await this.#connection.open(call, this.#timeoutMs, signal);
    return chunks;
  }

  /** Without retries there is no second try that a key would be needed for. */
  #keyed(jobs: readonly JobRequestBody[]): JobRequestBody[] {
    if (!this.#retry) return [...jobs];
    const batch = this.#random.uuid();
    return jobs.map((job, n) =>
      // A second try is the same request, also when the job of the first one has failed meanwhile.
      job.idempotency_key === undefined
        ? { ...job, idempotency_key: `client:${batch}:${n}`, key_reuse: "never" }
        : job,
    );
  }
}
