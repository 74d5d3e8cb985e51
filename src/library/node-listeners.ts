/** What happens to jobs in this process, for the program around the node: events, the errors of handlers, and functions around them. */

import { causeOf } from "../core/errors.ts";
import type { JobId } from "../core/ids.ts";
import type { JobRun } from "../jobs/run/job-run.ts";
import type { Jobs } from "../jobs/job-service.ts";
import type { Log } from "../platform/log.ts";
import type { EndedRun, NodeEvents } from "../platform/node-events.ts";
import type { Middleware } from "./node-options.ts";

export interface EventJob {
  readonly id: JobId;
  readonly task: string;
  readonly queue: string;
}

export interface RunJob extends EventJob {
  /** 1 for its first start. */
  readonly attempt: number;
}

export interface FailedRun {
  readonly job: RunJob;
  /** False: the job has failed. */
  readonly willRetry: boolean;
}

export interface BatonEvents {
  /** Stored by this node, and not in a transaction of the caller. */
  readonly "job.submitted": { readonly job: EventJob };
  readonly "job.completed": { readonly job: RunJob; readonly result: unknown };
  /** A run failed, and the job will run again. */
  readonly "job.retrying": { readonly job: RunJob; readonly error: Error; readonly delayMs: number };
  /** For good. */
  readonly "job.failed": { readonly job: RunJob; readonly error: Error };
  /** While it ran. */
  readonly "job.cancelled": { readonly job: RunJob; readonly error: Error };
  /** By a drain of this node. It goes back to its queue. */
  readonly "job.interrupted": { readonly job: RunJob };
}

export type BatonEvent = keyof BatonEvents;
export type BatonListener<Name extends BatonEvent> = (event: BatonEvents[Name]) => void;

export const BATON_EVENTS = [
  "job.submitted",
  "job.completed",
  "job.retrying",
  "job.failed",
  "job.cancelled",
  "job.interrupted",
] as const satisfies readonly BatonEvent[];

export class NodeListeners {
  readonly #listeners = new Map<BatonEvent, Set<(event: never) => void>>();
  readonly #onError: ((error: Error, failed: FailedRun) => void) | undefined;
  readonly #log: Pick<Log, "error"> | undefined;

  constructor(options: {
    readonly onError?: ((error: Error, failed: FailedRun) => void) | undefined;
    readonly log?: Pick<Log, "error"> | undefined;
  }) {
    this.#onError = options.onError;
    this.#log = options.log;
  }

  on<Name extends BatonEvent>(name: Name, listener: BatonListener<Name>): () => void {
    const listeners = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, listeners.add(listener));
    return () => void listeners.delete(listener);
  }

  /** Of one start of the node. */
  hear(events: NodeEvents, jobs: () => Pick<Jobs, "get">): void {
    events.on("jobs.submitted", (submitted) => {
      if (!this.#hears("job.submitted")) return;
      submitted.answers.forEach(({ id }, at) => {
        const { task, queue } = submitted.jobs[at]!;
        this.#emit("job.submitted", { job: { id, task, queue } });
      });
    });
    events.on("run.ended", (ended) => this.#ended(ended));
    events.on("jobs.recovered", (recovered) => {
      if (!this.#hears("job.failed")) return;
      for (const { id, status } of recovered) if (status === "failed") void this.#lost(id, jobs());
    });
  }

  #ended({ run, outcome, thrown }: EndedRun): void {
    if (outcome.kind === "completed" && !this.#hears("job.completed")) return;
    const { id, task, queue, attempts: attempt } = run;
    const job: RunJob = { id, task, queue, attempt };
    switch (outcome.kind) {
      case "completed":
        return this.#emit("job.completed", { job, result: JSON.parse(outcome.result) as unknown });
      case "retry": {
        const error = errorOf(outcome.error, thrown);
        this.#call(this.#onError, error, { job, willRetry: true });
        return this.#emit("job.retrying", { job, error, delayMs: outcome.delayMs });
      }
      case "failed": {
        const error = errorOf(outcome.error, thrown);
        this.#call(this.#onError, error, { job, willRetry: false });
        return this.#emit("job.failed", { job, error });
      }
      case "cancelled":
        return this.#emit("job.cancelled", { job, error: errorOf(outcome.error, undefined) });
      case "interrupted":
        return this.#emit("job.interrupted", { job });
      case "released":
        return; // it never began
    }
  }

  /** Its node died too often, or it ran far too long: no run here has ended. */
  async #lost(id: JobId, jobs: Pick<Jobs, "get">): Promise<void> {
    const found = await jobs.get(id).catch(() => null);
    if (!found?.error) return;
    const { task, queue, attempts: attempt } = found;
    this.#emit("job.failed", { job: { id, task, queue, attempt }, error: causeOf(found.error) });
  }

  #hears(name: BatonEvent): boolean {
    return (this.#listeners.get(name)?.size ?? 0) > 0;
  }

  #emit<Name extends BatonEvent>(name: Name, event: BatonEvents[Name]): void {
    for (const listener of this.#listeners.get(name) ?? [])
      this.#call(listener as BatonListener<Name>, event);
  }

  /** A mistake in a listener is not the job's. */
  #call<Args extends readonly unknown[]>(
    listener: ((...args: Args) => unknown) | undefined,
    ...args: Args
  ): void {
    const told = (error: unknown): void =>
      this.#log?.error({ err: error }, "a listener of the program failed");
    try {
      const answer = listener?.(...args);
      if (answer instanceof Promise) answer.catch(told);
    } catch (error) {
      told(error);
    }
  }
}

/** What the handler threw, so that its stack and its fields are there. */
function errorOf(stored: Parameters<typeof causeOf>[0], thrown: unknown): Error {
  return thrown instanceof Error ? thrown : causeOf(stored);
}

/** Null where there is nothing to call: a run then costs nothing more. */
export function aroundRuns(
  use: readonly Middleware[],
): ((run: JobRun, next: () => unknown) => unknown) | undefined {
  if (use.length === 0) return undefined;
  return async (run, handler) => {
    let result: unknown;
    const step = async (at: number): Promise<unknown> => {
      if (at === use.length) return (result = await handler());
      const returned = await use[at]!(run, () => step(at + 1));
      return returned === undefined ? result : (result = returned);
    };
    return step(0);
  };
}
