/**
 * The client of a cluster for programs elsewhere, as `batonjs/client`. Told of the types of the tasks, the compiler checks
 * their names, payloads and results. It loads nothing of the server.
 */

import type { JobBody, JobSummaryBody, LogLineBody } from "../api/bodies/job-body.ts";
import type { AnswerOf, Parts, Route } from "../api/operation-table.ts";
import type { Duration } from "../core/duration.ts";
import { type BatonError, invalid, JobFailed } from "../core/errors.ts";
import type { JobStatus } from "../core/jobs/job.ts";
import type { JobOptions } from "../core/jobs/job-options.ts";
import { jsonIssues } from "../core/plain-json.ts";
import { publicForm, type PublicForm } from "../core/wire-names.ts";
import { BatonClient, type BatonClientOptions, type QueueOptions } from "./baton-client.ts";
import { CallError } from "./client-error.ts";
import type { LiveEvent } from "./cluster-calls.ts";
import {
  type JobFilter,
  filterOf,
  jobBody,
  oneDuration,
  readDuration,
  scheduleBody,
  type ScheduleRequest,
  type ScheduleTiming,
  timingBody,
  unknownOptions,
} from "./request-bodies.ts";
import type { ClusterEvent } from "./streams/cluster-events.ts";
import type { StreamOptions } from "./streams/resumable-stream.ts";
import type { AnyTasks, JobEntry, JobRef, PayloadAnd, PayloadOf, ResultOf, TaskName } from "./task-types.ts";

export { BatonError, hasCode, JobFailed } from "../core/errors.ts";
export type { Client };
export type { ErrorCode, ErrorDetails, Issue } from "../core/errors.ts";
export type { Duration } from "../core/duration.ts";
export type { JobStatus } from "../core/jobs/job.ts";
export type { JobOptions } from "../core/jobs/job-options.ts";
export type { JsonOf } from "../core/json.ts";
export type { JobFilter, ScheduleOptions, ScheduleRequest, ScheduleTiming } from "./request-bodies.ts";
export type { ClusterEvent } from "./streams/cluster-events.ts";
export type { LiveEvent } from "./cluster-calls.ts";
export type { AnyTasks, JobRef, PayloadOf, ResultOf, TaskName, TaskTypes } from "./task-types.ts";

type Names = { readonly job_id: "id" };
const NAMES: Names = { job_id: "id" };

/** In a list, without its payload. */
export type JobSummary = PublicForm<JobSummaryBody, Names>;
export type Job = PublicForm<JobBody, Names>;
export type JobLogLine = PublicForm<LogLineBody>;
export type Queue = PublicForm<AnswerOf<"GET /queues">["queues"][number]>;
export type Schedule = PublicForm<AnswerOf<"GET /schedules/{name}">>;
export type Occurrence = PublicForm<AnswerOf<"GET /schedules/{name}/history">["occurrences"][number]>;

export interface ClientOptions extends Pick<BatonClientOptions, "clock" | "random" | "connect"> {
  /** Some nodes, also as one text with commas; one that is up is enough. `BATON_URL`, or this machine, unless told otherwise. */
  readonly urls?: string | readonly string[];
  /** Sent as `Authorization: Bearer`; `BATON_TOKEN` unless told otherwise. Null sends none. */
  readonly token?: string | null;
  /** For each call, over all its tries, until the last byte of its answer: 30 s unless told otherwise. */
  readonly timeout?: Duration;
  /** False: only the given nodes are used, also when they tell of others. */
  readonly discover?: boolean;
  /** False: each call is tried once, at the first node, and what became of it is told at once. */
  readonly retry?: boolean;
}

export interface Submitted<Result = unknown> {
  readonly id: JobRef<Result>;
  readonly status: JobStatus;
  /** True when the idempotency key was known: this is the job that was there already. */
  readonly existed: boolean;
}

export interface WaitOptions {
  /** Then it rejects with TIMEOUT, and the job goes on. For as long as it takes unless told otherwise. */
  readonly timeout?: Duration;
  /** Aborted, it rejects with the reason of the signal, and the job goes on. */
  readonly signal?: AbortSignal;
}

export interface CallOptions {
  /** How long to wait for the result; the client's own time-out unless told otherwise. */
  readonly timeout?: Duration;
}

export interface FollowOptions {
  readonly signal?: AbortSignal;
  /** When no node can be reached for so long, it rejects: 30 s unless told otherwise. */
  readonly giveUpAfter?: Duration;
  /** The stream broke and is tried again; once for each reason. */
  readonly onTrouble?: (error: BatonError) => void;
}

export type JobEvent =
  | { readonly type: "log"; readonly line: JobLogLine }
  | { readonly type: "progress"; readonly progress: number | null; readonly message: string | null }
  /** The last one. */
  | { readonly type: "completed" | "failed" | "cancelled"; readonly job: Job };

export interface JobPage {
  readonly jobs: readonly JobSummary[];
  /** Of the next page; null on the last one. */
  readonly cursor: string | null;
  /** True: a node that keeps jobs of its own could not be reached. */
  readonly partial: boolean;
}

const CLIENT_OPTIONS = ["urls", "token", "timeout", "discover", "retry", "clock", "random", "connect"];

/** `Tasks`: the type of the list of tasks, or of a module that exports them. Without it any name goes, with any payload. */
export function createClient<Tasks = AnyTasks>(options: ClientOptions = {}): Client<Tasks> {
  const issues = unknownOptions(options, CLIENT_OPTIONS);
  const timeoutMs = readDuration("timeout", options.timeout, issues);
  if (issues.length > 0) throw invalid("BAD_OPTIONS", issues);
  const { timeout: _, ...rest } = options;
  return new Client(new BatonClient({ ...rest, timeoutMs }));
}

class Client<Tasks = AnyTasks> implements AsyncDisposable {
  readonly queues: ReturnType<typeof queueCalls>;
  readonly schedules: ReturnType<typeof scheduleCalls<Tasks>>;
  readonly #client: BatonClient;

  constructor(client: BatonClient) {
    this.#client = client;
    this.queues = queueCalls(client);
    this.schedules = scheduleCalls<Tasks>(client);
  }

  /** The nodes that it knows: those that were given, and those that these have told of. */
  get nodes(): readonly string[] {
    return this.#client.nodes;
  }

  /** The one that answered last. */
  get node(): string | null {
    return this.#client.node;
  }

  /** A job without an idempotency key gets one, so that a try whose answer was lost can be repeated and does not make two jobs. */
  async submit<Name extends TaskName<Tasks>>(
    task: Name,
    ...[payload, options]: PayloadAnd<PayloadOf<Tasks, Name>, JobOptions>
  ): Promise<Submitted<ResultOf<Tasks, Name>>> {
    const { body, issues } = jobBody(task, payload, options);
    if (issues.length > 0) throw invalid("BAD_REQUEST", issues);
    return submitted(await this.#client.submit(body));
  }

  /** All of them or none; keys as with `submit`. */
  async submitMany<const Jobs extends readonly JobEntry<Tasks>[]>(
    jobs: Jobs,
  ): Promise<{
    [Index in keyof Jobs]: Submitted<ResultOf<Tasks, Extract<Jobs[Index][0], TaskName<Tasks>>>>;
  }> {
    const written = jobs.map(([task, payload, options], index) =>
      jobBody(task, payload, options as JobOptions | undefined, `[${index}].`),
    );
    const issues = written.flatMap((job) => job.issues);
    if (issues.length > 0) throw invalid("BAD_REQUEST", issues);
    const answers = jobs.length === 0 ? [] : await this.#client.submitMany(written.map(({ body }) => body));
    return answers.map(submitted) as never;
  }

  /** The result of a job, however long it takes and whichever node dies. Rejects with JobFailed when it ended without one. */
  async wait<Result = unknown>(id: JobRef<Result> | string, options: WaitOptions = {}): Promise<Result> {
    const { signal } = options;
    const timeoutMs = oneDuration("timeout", options.timeout);
    const { job, result } = await this.#client.wait(id, { timeoutMs, signal });
    if (job.status !== "completed") throw new JobFailed(id, job.status, job.error);
    return result as Result;
  }

  /** Runs the task at once and waits for its result. Rejects with JobFailed, or with TIMEOUT: then the job goes on. */
  async call<Name extends TaskName<Tasks>>(
    task: Name,
    ...[payload, options]: PayloadAnd<PayloadOf<Tasks, Name>, CallOptions>
  ): Promise<ResultOf<Tasks, Name>> {
    const issues = payload === undefined ? [] : jsonIssues(payload, "payload");
    if (issues.length > 0) throw invalid("BAD_REQUEST", issues);
    const timeoutMs = oneDuration("timeout", options?.timeout);
    try {
      return (await this.#client.call(task, payload, { timeoutMs })).result as ResultOf<Tasks, Name>;
    } catch (error) {
      throw failedCall(error) ?? error;
    }
  }

  /** As it is now. Rejects with NOT_FOUND. */
  async job(id: string): Promise<Job> {
    return publicForm(await this.#client.job(id), NAMES);
  }

  /** A page of the jobs of the whole cluster, newest first. */
  async jobs(filter: JobFilter = {}): Promise<JobPage> {
    const answer = await this.#client.request("GET /cluster/jobs", { query: filterOf(filter) });
    const { items, next_cursor: cursor, partial } = answer;
    return { jobs: items.map((job) => publicForm(job, NAMES)), cursor, partial };
  }

  /** A page of the log; `after` is the `seq` of the last line that is known. */
  async logs(
    id: string,
    options: { readonly after?: number; readonly limit?: number } = {},
  ): Promise<readonly JobLogLine[]> {
    return publicForm((await this.#client.logs(id, options)).logs);
  }

  /** Each log line once and in order, progress, and the end, across broken connections and the death of nodes. */
  async *events(
    id: string,
    options: FollowOptions & { readonly after?: number } = {},
  ): AsyncGenerator<JobEvent, void> {
    const { after } = options;
    for await (const event of this.#client.followLogs(id, { after, ...following(options) })) {
      if (event.event === "log") yield { type: "log", line: publicForm(event.line) };
      else if (event.event === "progress")
        yield { type: "progress", progress: event.progress, message: event.message };
      else yield { type: event.status as "completed", job: await this.job(id) };
    }
    options.signal?.throwIfAborted();
  }

  /** A waiting job is cancelled at once; a running one is told to stop, and its signal fires. Rejects with JOB_FINISHED. */
  async cancel(id: string, reason?: string): Promise<void> {
    await this.#client.cancel(id, reason);
  }

  /** Back into its queue with all its attempts. Rejects with JOB_NOT_RETRYABLE unless it failed or was cancelled. */
  async retry(id: string): Promise<void> {
    await this.#client.retry(id);
  }

  /** Rejects with JOB_RUNNING. */
  async remove(id: string): Promise<void> {
    await this.#client.remove(id);
  }

  /** What happens in the cluster: `hello` after each connection, `gap` where events are missing. A hint to look, never the only copy. */
  clusterEvents(options: FollowOptions & { readonly after?: string } = {}): AsyncIterable<ClusterEvent> {
    const { after } = options;
    return this.#client.events({ after, ...following(options) });
  }

  /** The overview of the cluster whenever it has changed, and its journal, as the dashboard gets them. */
  live(options: FollowOptions = {}): AsyncIterable<LiveEvent> {
    return this.#client.cluster.live(following(options));
  }

  /** Any operation of the HTTP API, in its spelling; the other methods are for what programs do most. */
  request<R extends Route>(route: R, parts: Parts<R> = {}): Promise<AnswerOf<R>> {
    return this.#client.request(route, parts);
  }

  /** What is under way rejects with CLOSED. */
  close(): Promise<void> {
    return this.#client.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

function queueCalls(client: BatonClient) {
  return {
    list: async (): Promise<readonly Queue[]> => publicForm((await client.queues()).queues),
    /** Its jobs wait until it is resumed; those that run go on. */
    pause: async (name: string, options?: QueueOptions): Promise<void> =>
      void (await client.pauseQueue(name, options)),
    resume: async (name: string, options?: QueueOptions): Promise<void> =>
      void (await client.resumeQueue(name, options)),
  };
}

function scheduleCalls<Tasks>(client: BatonClient) {
  return {
    list: async (): Promise<readonly Schedule[]> => publicForm((await client.schedules()).schedules),
    get: async (name: string): Promise<Schedule> => publicForm(await client.schedule(name)),
    /** Makes it, or changes what is different. */
    put: async (schedule: ScheduleRequest<Tasks>): Promise<Schedule> =>
      publicForm(await client.putSchedule(scheduleBody(schedule))),
    remove: async (name: string): Promise<void> => void (await client.removeSchedule(name)),
    pause: async (name: string): Promise<void> => void (await client.pauseSchedule(name)),
    resume: async (name: string): Promise<void> => void (await client.resumeSchedule(name)),
    /** Submits its job now, outside the schedule. */
    trigger: async (name: string): Promise<string> => (await client.triggerSchedule(name)).job_id,
    /** When a timing would fire, whether it is stored or not. */
    preview: async (timing: ScheduleTiming, count?: number): Promise<readonly Date[]> => {
      const { body, issues } = timingBody(timing);
      if (issues.length > 0) throw invalid("BAD_REQUEST", issues);
      const { fires } = await client.previewSchedule({ ...body, count });
      return fires.map((at) => new Date(at));
    },
    history: async (name: string, limit?: number): Promise<readonly Occurrence[]> =>
      publicForm((await client.scheduleHistory(name, limit)).occurrences),
  };
}

function submitted(answer: {
  readonly job_id: string;
  readonly status: JobStatus;
  readonly existed: boolean;
}) {
  return { id: answer.job_id, status: answer.status, existed: answer.existed };
}

function following({ signal, giveUpAfter, onTrouble }: FollowOptions): StreamOptions {
  return { signal, giveUpAfterMs: oneDuration("giveUpAfter", giveUpAfter), onTrouble };
}

function failedCall(error: unknown): JobFailed | null {
  if (!(error instanceof CallError) || error.code !== "FUNCTION_FAILED") return null;
  const {
    job_id: id,
    status,
    job_error: cause,
  } = error.details as {
    readonly job_id: string;
    readonly status: string;
    readonly job_error: JobBody["error"];
  };
  return new JobFailed(id, status, cause);
}
