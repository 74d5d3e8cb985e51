/**
 * Validates jobs, fills in defaults, and stores jobs that arrive together in one commit. It refuses when too many wait for the store. A job
 * of a task that the cluster has had, or may have had, waits for a node that knows it (tasks/known-tasks.ts).
 */

import { BatonError, hasCode, invalid, type Issue, nearest } from "../../core/errors.ts";
import { jobId, THING_NAME, type JobId, Uuids } from "../../core/ids.ts";
import { keyConflict } from "../../core/jobs/idempotency.ts";
import { rareIn, type JobInput } from "../../core/jobs/job-fields.ts";
import type { Term } from "../../core/leadership/term.ts";
import { readTrace } from "../../core/trace.ts";
import { Batcher, byTerm, type UnderTerm } from "../../platform/batcher.ts";
import type { Platform } from "../../platform/platform.ts";
import type {
  Author,
  ClaimedJob,
  NotedTask,
  Store,
  NewJob,
  Submitted,
  TransactionClient,
} from "../../store/store.ts";
import type { JobSpans } from "../job-spans.ts";
import { checkPayload, type Task, taskDefaults } from "../tasks/task.ts";
import type { KnownTasks } from "../tasks/known-tasks.ts";
import type { TaskRegistry } from "../tasks/task-registry.ts";
import { accepted, bad, fieldIssues, issue, payloadText } from "./check-request.ts";

/** As a caller writes it, apart from the spelling (core/jobs/job-fields.ts). `runAt` is wall time in ms, and excludes `delayMs`. */
export interface SubmitRequest extends JobInput {
  /** Chosen by the node that received the request; begins with the name of the node that stores the job. */
  readonly id?: JobId;
}

/** A task of the program itself is not misspelt, even if its workers are deployed later. */
export function byObject({ name }: { readonly name: string }): Pick<SubmitRequest, "task" | "allowUnknown"> {
  return { task: name, allowUnknown: true };
}

export interface SubmitOptions {
  /** A connection to the node's own PostgreSQL database with an open transaction: the jobs are committed or rolled back with it. */
  readonly client?: TransactionClient;
  /** The trace of the caller (core/trace.ts), unless one is active here: it goes with the jobs to their runs. */
  readonly trace?: string | null;
}

export interface SubmitterOptions {
  readonly store: Pick<Store, "jobs">;
  readonly tasks: TaskRegistry;
  /** The tasks of the cluster; any name will do if it is left out. */
  readonly knownTasks?: KnownTasks;
  readonly author: () => Author;
  readonly defaults: { readonly maxAttempts: number; readonly timeoutMs: number | null };
  /** Most jobs that may wait for the store. A call of more is taken when nothing else waits. */
  readonly unstoredMax?: number;
  readonly wakes: (jobs: readonly NewJob[]) => boolean;
  readonly spans?: JobSpans;
  /** New work has been stored and waits; `notified` when the store has notified other nodes of it. */
  readonly onStored: (jobs: readonly NewJob[], notified: boolean) => void;
}

const DEFAULTS = { queue: "default", priority: 0 } as const;

/** The options that a job of this task has, unless its caller says otherwise. */
export function notedTask(task: Task, { maxAttempts, timeoutMs }: SubmitterOptions["defaults"]): NotedTask {
  const own = taskDefaults(task);
  return {
    task: task.name,
    queue: task.queue ?? DEFAULTS.queue,
    priority: task.priority ?? DEFAULTS.priority,
    maxAttempts: own.maxAttempts ?? maxAttempts,
    timeoutMs: own.timeoutMs ?? timeoutMs,
  };
}

/** So far behind may the time in an id be. */
const SAME_TIME_MS = 10;

type SubmitterPlatform = Pick<Platform, "identity" | "clock" | "random" | "events">;

export class Submitter {
  readonly #options: SubmitterPlatform & SubmitterOptions;
  readonly #batcher: Batcher<NewJob, Submitted>;
  #onGiven: ((job: ClaimedJob) => void) | null = null;
  #unstored = 0;
  #uuids: Uuids | null = null;
  #uuidsUntil = -Infinity;
  /** Of a leader, whose term goes along and is compared. */
  readonly #fenced: Batcher<UnderTerm<NewJob, Term>, Submitted>;

  constructor({ identity, clock, random, events }: SubmitterPlatform, options: SubmitterOptions) {
    this.#options = { identity, clock, random, events, ...options };
    this.#batcher = new Batcher({
      clock,
      flush: (jobs) => this.#leaving(jobs.length, this.#store(jobs, undefined, true)),
    });
    const underTerms = byTerm((jobs: readonly NewJob[], term: Term) => this.#store(jobs, term, true));
    this.#fenced = new Batcher({ clock, flush: (items) => this.#leaving(items.length, underTerms(items)) });
  }

  /** Of a job that was put into the slot of this process. The worker of the slot is made after the submitter. */
  onGiven(listener: (job: ClaimedJob) => void): void {
    this.#onGiven = listener;
  }

  submit(requests: readonly SubmitRequest[], options: SubmitOptions = {}): Promise<readonly Submitted[]> {
    const { client } = options;
    return this.#traced(requests, options, (jobs) =>
      client === undefined ? this.#storeTogether(jobs) : this.#storeWithin(client, jobs),
    );
  }

  /** The same for a leader. Rejects with STALE_EPOCH when that term is over. */
  submitUnder(
    term: Term,
    requests: readonly SubmitRequest[],
    options: Pick<SubmitOptions, "trace"> = {},
  ): Promise<readonly Submitted[]> {
    return this.#traced(requests, options, (jobs) => this.#storeTogether(jobs, term));
  }

  /** A single job with others that arrive at the same time. */
  async #storeTogether(jobs: readonly NewJob[], term?: Term): Promise<readonly Submitted[]> {
    if (jobs.length === 0) return [];
    this.#admit(jobs.length);
    if (jobs.length !== 1) return this.#leaving(jobs.length, this.#store(jobs, term));
    const [write] = jobs as [NewJob];
    const answer = await (term ? this.#fenced.add({ write, term }) : this.#batcher.add(write));
    if (answer.conflict) throw keyConflict([write], 0, answer.id);
    return [answer];
  }

  /**
   * In a span where traces are recorded. Each promise on the way of a single job costs as much as all of its checks: the common one is
   * prepared and admitted within the call.
   */
  async #traced<T>(
    requests: readonly SubmitRequest[],
    { trace: given = null }: Pick<SubmitOptions, "trace">,
    store: (jobs: readonly NewJob[]) => Promise<T>,
  ): Promise<T> {
    const { spans } = this.#options;
    const trace = given === null ? null : checkedTrace(given);
    if (!spans?.on) {
      const prepared = this.#prepareAll(requests, trace);
      return store(prepared instanceof Promise ? await prepared : prepared);
    }
    return spans.submit(trace, async (span) => {
      const jobs = await this.#prepareAll(requests, span.trace);
      spans.submitting(span, jobs);
      return store(jobs);
    });
  }

  /** One after the other. Throws all that is wrong with any of them. */
  #prepareAll(
    requests: readonly SubmitRequest[],
    trace: string | null,
    jobs: NewJob[] = [],
  ): NewJob[] | Promise<NewJob[]> {
    const single = requests.length === 1;
    for (let i = jobs.length; i < requests.length; i++) {
      let job: NewJob | Promise<NewJob>;
      try {
        job = this.#prepare(requests[i]!, single ? "" : `[${i}].`, trace);
      } catch (error) {
        return this.#allIssues(requests, i, error);
      }
      if (job instanceof Promise) {
        return job.then(
          (checked) => {
            jobs.push(checked);
            return this.#prepareAll(requests, trace, jobs);
          },
          (error: unknown) => this.#allIssues(requests, i, error),
        );
      }
      jobs.push(job);
    }
    return jobs;
  }

  /** With those of the jobs behind the first one that is refused. */
  async #allIssues(requests: readonly SubmitRequest[], at: number, error: unknown): Promise<never> {
    if (!(error instanceof BatonError) || at === requests.length - 1) throw error;
    const issues = [...error.issues];
    for (let i = at + 1; i < requests.length; i++) {
      try {
        await this.#prepare(requests[i]!, `[${i}].`, null);
      } catch (other) {
        if (other instanceof BatonError) issues.push(...other.issues);
      }
    }
    throw invalid(error.code, issues);
  }

  /** A store that is slower than its callers must not fill the memory with what they wait for: they are asked to try again later. */
  #admit(count: number): void {
    const { unstoredMax = Infinity } = this.#options;
    if (this.#unstored > 0 && this.#unstored + count > unstoredMax) {
      const message = `this node has ${this.#unstored} jobs that the store has not taken yet (jobs.unstored_max is ${unstoredMax}); try again in a moment, or at another node`;
      throw new BatonError("TOO_MANY_REQUESTS", message);
    }
    this.#unstored += count;
  }

  /** So many of those that were admitted wait no longer, however it ends. */
  async #leaving<Answer>(count: number, storing: Promise<Answer>): Promise<Answer> {
    try {
      return await storing;
    } finally {
      this.#unstored -= count;
    }
  }

  async #store(jobs: readonly NewJob[], term?: Term, apart = false): Promise<readonly Submitted[]> {
    const { identity, store, author, wakes, onStored, events } = this.#options;
    const notified = wakes(jobs);
    const under = term ? { node: identity.name, ownerEpoch: term.epoch, leaderEpoch: term.epoch } : author();
    let answers: readonly Submitted[];
    try {
      answers = await store.jobs.submit(jobs, under, notified, term, apart);
    } catch (error) {
      if (hasCode(error, "IDEMPOTENCY_CONFLICT")) throw error;
      events.emit("jobs.submit_failed", error);
      events.refused("jobs.submit", error);
      throw error;
    }
    this.#emitNew(jobs, answers);
    const [{ given, ...answer }] = answers as [Submitted];
    if (given === undefined) {
      onStored(jobs, notified);
      return answers;
    }
    if (given) this.#onGiven?.(given);
    return [answer];
  }

  #emitNew(jobs: readonly NewJob[], answers: readonly Submitted[]): void {
    const { events } = this.#options;
    if (!answers.some(({ existed }) => existed)) return events.emit("jobs.submitted", { jobs, answers });
    events.emit("jobs.submitted", {
      jobs: jobs.filter((_, at) => !answers[at]!.existed),
      answers: answers.filter(({ existed }) => !existed),
    });
  }

  /** No worker is woken here: that comes with the caller's commit. */
  #storeWithin(client: TransactionClient, jobs: readonly NewJob[]): Promise<readonly Submitted[]> {
    const { store, author } = this.#options;
    checkClient(client);
    if (!store.jobs.submitWithin) {
      const remedy = "this node has an embedded one, see the setting `store`";
      throw bad("client", `needs a store in PostgreSQL; ${remedy}`);
    }
    return store.jobs.submitWithin(client, jobs, author());
  }

  #prepare(request: SubmitRequest, at: string, trace: string | null): NewJob | Promise<NewJob> {
    const task = this.#options.tasks.get(request.task);
    const issues = this.#issuesIn(request, task, at);
    if (!task?.schema) {
      if (issues) throw invalid("BAD_REQUEST", issues);
      const { knownTasks } = this.#options;
      if (task || !knownTasks || request.allowUnknown || knownTasks.has(request.task))
        return this.#newJob(request, task, at, trace);
      return knownTasks.require(request.task, { at }).then(() => this.#newJob(request, task, at, trace));
    }
    const checked = checkPayload(task, request.payload);
    const finish = (verdict: Awaited<typeof checked>): NewJob => {
      accepted(verdict, at, issues);
      return this.#newJob(request, task, at, trace);
    };
    return checked instanceof Promise ? checked.then(finish) : finish(checked);
  }

  #issuesIn(request: SubmitRequest, task: Task | undefined, at: string): Issue[] | null {
    let issues = fieldIssues(request, at);
    const unnamed = task ? null : this.#nameIssue(request.task, at);
    if (unnamed) issues = [unnamed, ...(issues ?? [])];
    if (request.keyReuse !== undefined && request.idempotencyKey === undefined)
      (issues ??= []).push(issue("key_reuse", "is about an idempotency_key; give that as well", at));
    if (request.delayMs !== undefined && request.runAt !== undefined)
      (issues ??= []).push(issue("run_at", "and delay_ms exclude each other; give one", at));
    return issues;
  }

  #newJob(request: SubmitRequest, task: Task | undefined, at: string, trace: string | null): NewJob {
    const { defaults, identity } = this.#options;
    const own = task && taskDefaults(task);
    const job: NewJob = {
      id: request.id ?? jobId(identity.name, this.#newUuid()),
      task: request.task,
      queue: request.queue ?? task?.queue ?? DEFAULTS.queue,
      priority: request.priority ?? task?.priority ?? DEFAULTS.priority,
      payload: payloadText(request.payload, at),
      delayMs: request.delayMs ?? 0,
      runAt: request.runAt ?? null,
      maxAttempts: request.maxAttempts ?? own?.maxAttempts ?? defaults.maxAttempts,
      timeoutMs: request.timeoutMs ?? own?.timeoutMs ?? defaults.timeoutMs,
      idempotencyKey: request.idempotencyKey ?? null,
      trace,
    };
    const rare = rareIn(request);
    const { keyReuse } = request;
    return rare || keyReuse ? { ...job, ...rare, ...(keyReuse && { keyReuse }) } : job;
  }

  /** Jobs that are submitted at the same time have consecutive ids: a store may keep them as a range. */
  #newUuid(): string {
    const { clock, random } = this.#options;
    const now = clock.monotonic();
    if (now >= this.#uuidsUntil) {
      this.#uuids = new Uuids(random.timedUuid());
      this.#uuidsUntil = now + SAME_TIME_MS;
    }
    return this.#uuids!.next();
  }

  #nameIssue(name: unknown, at: string): Issue | null {
    if (typeof name === "string" && THING_NAME.test(name)) return null;
    const near = typeof name === "string" ? nearest(name, this.#options.tasks.names()) : null;
    return issue("task", `must be a task's name${near ? `; did you mean ${near}?` : ""}`, at);
  }
}

function checkedTrace(given: string): string {
  const trace = readTrace(given);
  if (trace !== null) return trace;
  throw bad(
    "trace",
    "must be a traceparent of the W3C, as 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
  );
}

function checkClient(client: TransactionClient & { readonly totalCount?: unknown }): void {
  if (typeof client?.query !== "function") {
    throw bad("client", "must have a function query(text, values), as a client of node-postgres has");
  }
  // A pool runs each query on a connection of its choice, outside of any transaction of the caller.
  if (typeof client.totalCount === "number") {
    const remedy = "give the client from pool.connect() on which the transaction is open";
    throw bad("client", `is a pool; ${remedy}`);
  }
}
