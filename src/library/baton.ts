/**
 * A node in the program that made it: to submit jobs, to wait for them, and to hear of them. What has no method here is in `services`.
 *
 * A call that fails rejects with a BatonError; test its code.
 */

import type { OperationExecutor } from "../api/execute.ts";
import type { NodeServices } from "../api/node-services.ts";
import { BatonError, nearest } from "../core/errors.ts";
import type { JobId } from "../core/ids.ts";
import type { JobOptions } from "../core/jobs/job-options.ts";
import type { JsonOf } from "../core/json.ts";
import type { Mounted } from "../http/outer-callers.ts";
import { JobHandle } from "../jobs/job-handle.ts";
import { optionFields } from "../jobs/submit/check-request.ts";
import { byObject, type SubmitOptions, type SubmitRequest } from "../jobs/submit/submitter.ts";
import type { AnyTask, Task } from "../jobs/tasks/task.ts";
import type { TaskInfo } from "../jobs/tasks/task-registry.ts";
import type { BatonNode } from "../node/baton-node.ts";
import { BATON_EVENTS, type BatonEvent, type BatonListener, type NodeListeners } from "./node-listeners.ts";
import type { AnyTransaction } from "./transactions/transaction-client.ts";
import { type SubmitsWithin, within } from "./transactions/within.ts";

/** `client`: submits within a transaction of the caller. `trace`: a W3C traceparent, unless a trace is active here. */
export interface JobSubmitOptions extends JobOptions, SubmitOptions {}

/** One of many: a task, its payload, and what is to be different for this job. */
export type JobEntry<Of extends AnyTask | string = AnyTask | string> = readonly [
  task: Of,
  payload: PayloadOf<Of>,
  options?: JobOptions,
];
export type PayloadOf<Of> = Of extends Task<any, any, infer Input> ? Input : unknown;
export type HandleOf<Of> = JobHandle<
  Of extends Task<any, infer Result, any> ? JsonOf<Awaited<Result>> : unknown
>;

export class Baton implements AsyncDisposable {
  readonly #node: BatonNode;
  readonly #listeners: NodeListeners;
  #stopped = false;

  constructor(node: BatonNode, listeners: NodeListeners) {
    this.#node = node;
    this.#listeners = listeners;
  }

  async start(): Promise<void> {
    this.#stopped = false;
    await this.#node.start();
  }

  /** Takes no new jobs, waits for those that run, and stops. With `hurry` they are asked to stop now. */
  async stop(options: { readonly hurry?: boolean } = {}): Promise<void> {
    await this.#node.stop(options);
    this.#stopped = true;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  protected get stopped(): boolean {
    return this.#stopped;
  }

  /**
   * The payload is checked by the schema of the task. A job of a task that this node does not know waits for a node that does; a name that no
   * node of the cluster has had so far rejects with UNKNOWN_TASK unless `allowUnknown` is set.
   */
  async submit<Result = unknown>(
    task: string,
    payload?: unknown,
    options?: JobSubmitOptions,
  ): Promise<JobHandle<Result>>;
  // The last one: the compiler tells what is wrong with it.
  async submit<Result, Input>(
    task: Task<any, Result, Input>,
    payload: NoInfer<Input>,
    options?: JobSubmitOptions,
  ): Promise<JobHandle<JsonOf<Awaited<Result>>>>;
  async submit(
    task: AnyTask | string,
    payload?: unknown,
    options: JobSubmitOptions = {},
  ): Promise<JobHandle<any>> {
    const { client, trace, ...rest } = options;
    const [handle] = await this.#submit([requestOf(task, payload, rest)], { client, trace });
    return handle!;
  }

  /** All of them or none, in their order. */
  async submitMany<const Tasks extends readonly (AnyTask | string)[]>(
    jobs: { readonly [At in keyof Tasks]: JobEntry<Tasks[At]> },
    options: SubmitOptions = {},
  ): Promise<{ -readonly [At in keyof Tasks]: HandleOf<Tasks[At]> }> {
    const entries: readonly JobEntry[] = jobs;
    const requests = entries.map((entry, at) => {
      if (!Array.isArray(entry)) throw badEntry(at);
      const [task, payload, each = {}] = entry;
      return requestOf(task, payload, each, `[${at}].`);
    });
    return (await this.#submit(requests, options)) as { -readonly [At in keyof Tasks]: HandleOf<Tasks[At]> };
  }

  /** Its submits store jobs within a transaction of the caller: of node-postgres, Drizzle, Kysely, Knex, Prisma or TypeORM. */
  tx(transaction: AnyTransaction): SubmitsWithin<this> {
    return within(this, transaction);
  }

  /** A job that was submitted elsewhere, or earlier. It need not exist. */
  job<Result = unknown>(id: string): JobHandle<Result> {
    const { jobs, clock } = this.services;
    return new JobHandle({ jobs, clock }, { id: id as JobId, existed: true });
  }

  /** Of jobs that are submitted to this node or run here. The returned function ends it. */
  on<Name extends BatonEvent>(name: Name, listener: BatonListener<Name>): () => void {
    if (!(BATON_EVENTS as readonly string[]).includes(name)) throw unknownEvent(name);
    return this.#listeners.on(name, listener);
  }

  get name(): string {
    return this.services.identity.name;
  }

  /** Where its API listens; throws unless it was made with `http`. */
  get url(): string {
    return this.#node.url;
  }

  tasks(): readonly TaskInfo[] {
    return this.#node.tasks();
  }

  runningJobs(): readonly { readonly id: JobId; readonly task: string }[] {
    return this.#node.runningJobs();
  }

  /** Lists of jobs, queues, schedules, health and all else that the API works with. Not before the start. */
  get services(): NodeServices {
    return this.#node.services;
  }

  /** Executes operations of the API in this process. */
  get executor(): OperationExecutor {
    return this.#node.executor;
  }

  /** The API and the dashboard for a server of the program around this node (`batonjs/fastify`, `batonjs/express`). */
  get mounted(): Mounted {
    return this.#node.mounted;
  }

  async #submit(requests: readonly SubmitRequest[], options: SubmitOptions): Promise<JobHandle<any>[]> {
    if (this.#stopped)
      throw new BatonError("STOPPED", "this node was stopped; jobs submitted now would be lost");
    const { jobs, clock } = this.services;
    const submitted = await this.#node.submitMany(requests, options);
    const inTransaction = options.client !== undefined;
    return submitted.map((each) => new JobHandle({ jobs, clock, inTransaction }, each));
  }
}

function requestOf(task: AnyTask | string, payload: unknown, options: JobOptions, at = ""): SubmitRequest {
  const name: unknown = typeof task === "string" ? task : (task as Partial<AnyTask> | undefined)?.name;
  if (typeof name !== "string") {
    const field = `${at}task`;
    throw new BatonError("BAD_REQUEST", `${field} must be a task or the name of one, not ${String(task)}`, {
      field,
    });
  }
  const named = typeof task === "string" ? { task } : byObject(task);
  return { ...optionFields(options, at), ...named, payload };
}

function badEntry(at: number): BatonError {
  const field = `[${at}]`;
  return new BatonError("BAD_REQUEST", `${field} must be a list: the task, the payload, options if any`, {
    field,
  });
}

function unknownEvent(name: string): BatonError {
  const near = nearest(name, BATON_EVENTS);
  const advice = near ? `did you mean "${near}"?` : `there are ${BATON_EVENTS.join(", ")}`;
  return new BatonError("BAD_OPTIONS", `there is no event "${name}"; ${advice}`, { field: "name" });
}
