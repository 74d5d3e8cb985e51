/**
 * The spans of a job in traces, by the semantic conventions for messaging. The store keeps the span of the submit with the job.
 *
 *   baton.submit ──┬── baton.wait ··· baton.claim         once more for every attempt, in the same trace
 *   (producer)     └── baton.run ──── baton.settle
 *                      (consumer)
 *
 * The wait lasts from the time at which the job could run to the start of its run.
 */

import { FUNCTIONS_QUEUE } from "../core/jobs/job.ts";
import { ACTIVE, failureOf, type Attributes, type Span, type Tracing } from "../platform/tracing.ts";
import type { ClaimedJob, NewJob, Outcome, Verdict } from "../store/store.ts";

/** Of the jobs of one claim that have a trace; a tracer does not take more at a time. */
const CLAIMED_MAX = 128;

export class JobSpans {
  readonly #tracing: Tracing;
  readonly #node: string;

  constructor(tracing: Tracing, node: string) {
    this.#tracing = tracing;
    this.#node = node;
  }

  get on(): boolean {
    return this.#tracing.on;
  }

  /** `given` is the trace that came with the request; what is active here goes before it, and is a part of it if all is well. */
  async submit<T>(given: string | null, store: (span: Span) => Promise<T>): Promise<T> {
    const tracing = this.#tracing;
    const span = tracing.start("baton.submit", {
      kind: "producer",
      parent: tracing.active() === null ? given : ACTIVE,
      attributes: this.#common("submit", "send"),
    });
    return span.run(async () => {
      try {
        const answer = await store(span);
        span.end();
        return answer;
      } catch (error) {
        span.end(failureOf(error));
        throw error;
      }
    });
  }

  submitting(span: Span, jobs: readonly NewJob[]): void {
    const [first] = jobs;
    if (!first) return;
    span.set({
      ...(jobs.every(({ queue }) => queue === first.queue) && destination(first.queue)),
      ...(jobs.every(({ task }) => task === first.task) && { "baton.task": first.task }),
      ...(jobs.length === 1
        ? { "messaging.message.id": first.id }
        : { "messaging.batch.message_count": jobs.length }),
    });
  }

  /** Of the jobs that were submitted in a trace; `startedAt` is when the claim was sent. */
  claimed(jobs: readonly ClaimedJob[], startedAt: number, by: Attributes = {}): void {
    for (const job of jobs.filter(({ trace }) => trace).slice(0, CLAIMED_MAX)) {
      const attributes = { ...this.#of(job, "claim", "receive"), ...by };
      this.#tracing.start("baton.claim", { kind: "client", parent: job.trace!, attributes, startedAt }).end();
    }
  }

  /** Its wait has ended `now`, and its run begins. */
  run(job: ClaimedJob, now: number): Span {
    if (job.trace) {
      const attributes = this.#of(job, "wait", "wait");
      // The time of a database may be ahead of ours.
      const startedAt = Math.min(job.runAt, now);
      this.#tracing.start("baton.wait", { kind: "internal", parent: job.trace, attributes, startedAt }).end();
    }
    return this.#tracing.start("baton.run", {
      kind: "consumer",
      parent: job.trace ?? null,
      attributes: this.#of(job, "run", "process"),
    });
  }

  /** The run has ended like this; null when its lease was lost. */
  ran(span: Span, outcome: Outcome | null): void {
    span.set({ "baton.outcome": outcome?.kind ?? "lease_lost" });
    if (outcome === null) return span.end({ code: "LEASE_LOST", message: "the lease on the job was lost" });
    span.end("error" in outcome ? outcome.error : null);
  }

  /** `run` is the trace of the run that has ended. */
  settle(job: Pick<ClaimedJob, "id" | "jobEpoch">, outcome: Outcome, run: string): Span {
    return this.#tracing.start("baton.settle", {
      kind: "client",
      parent: run,
      attributes: {
        ...this.#common("settle", "settle"),
        "messaging.message.id": job.id,
        "baton.job_epoch": job.jobEpoch,
        "baton.outcome": outcome.kind,
      },
    });
  }

  settled(span: Span, verdict: Verdict | undefined): void {
    if (verdict === "stale" || verdict === "missing")
      span.end({ code: "STALE_EPOCH", message: "the result was refused: the job has moved on" });
    else span.end();
  }

  #of(job: ClaimedJob, name: string, type: string): Attributes {
    return {
      ...this.#common(name, type),
      ...destination(job.queue),
      "messaging.message.id": job.id,
      "baton.task": job.task,
      "baton.attempt": job.attempts,
      "baton.job_epoch": job.jobEpoch,
    };
  }

  #common(name: string, type: string): Attributes {
    return {
      "messaging.system": "baton",
      "messaging.operation.name": name,
      "messaging.operation.type": type,
      "messaging.client.id": this.#node,
    };
  }
}

function destination(queue: string): Attributes {
  return {
    "messaging.destination.name": queue,
    ...(queue === FUNCTIONS_QUEUE && { "baton.function": true }),
  };
}
