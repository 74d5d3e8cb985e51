/**
 * An agent: a worker that uses only the HTTP API of the cluster. It leases jobs from the leader, runs them and posts
 * their results. It needs no access to the database and is not a member of the cluster.
 *
 *   controllers <──HTTP──> link (a thread of its own) <──messages──> runs (this thread, with the handlers)
 *
 * A handler that blocks this thread delays other handlers and the acceptance of jobs, but no renewal, no heartbeat and
 * no finished result.
 */

import type { JobRun } from "../jobs/run/job-run.ts";
import type { JobSpans } from "../jobs/job-spans.ts";
import type { TaskRegistry } from "../jobs/tasks/task-registry.ts";
import type { ThreadPool } from "../jobs/run/thread-pool.ts";
import type { Clock } from "../platform/clock.ts";
import type { Log } from "../platform/log.ts";
import { Lifecycle } from "../platform/service.ts";
import type { ClaimedJob, Outcome } from "../store/store.ts";
import { AgentRuns } from "./agent-runs.ts";
import { decide, type Ended, type FromLink, type RunKey } from "./controller-link-messages.ts";
import type { LinkPort, OpenLink } from "./controller-link-thread.ts";

export interface AgentOptions {
  readonly tasks: TaskRegistry;
  readonly threads: ThreadPool;
  readonly openLink: OpenLink;
  readonly concurrency: number;
  readonly drain: { readonly timeoutMs: number; readonly cleanupMs: number };
  readonly clock: Clock;
  readonly log: Log;
  readonly spans?: JobSpans;
  /** The link is gone. Nothing can be told to anybody any more: the process should end. */
  readonly onDied: (error: unknown) => void;
}

/** How long a hurried stop goes on posting results. Longer, and a stop without a leader ends as a kill. */
const LAST_TRIES_MS = 2_000;
/** What the link may take to answer beyond that. */
const FINISH_SLACK_MS = 1_000;

export class Agent extends Lifecycle {
  readonly #o: AgentOptions;
  readonly #runs: AgentRuns;
  readonly #reporting = new Set<JobRun>();
  #link: LinkPort | null = null;
  #hurry = new AbortController();
  #seen = 0;
  #draining = false;
  #speaking = false;
  #onFinished: (undelivered: number) => void = () => {};

  constructor(options: AgentOptions) {
    super();
    this.#o = options;
    this.#runs = new AgentRuns({
      ...options,
      abortGraceMs: options.drain.cleanupMs,
      onReport: (run) => {
        this.#reporting.add(run);
        this.#speakSoon();
      },
      onEnd: (run, outcome) => this.#ended(run, outcome),
    });
  }

  /** Jobs that run here now. */
  list(): readonly { readonly id: string; readonly task: string }[] {
    return this.#runs.list();
  }

  /** A stop that is under way waits for no handler any more. */
  hurry(): void {
    this.#hurry.abort();
  }

  protected async onStart(): Promise<void> {
    this.#draining = false;
    this.#seen = 0;
    this.#hurry = new AbortController();
    await this.#o.threads.start();
    this.#link = this.#o.openLink({ hear: (message) => this.#hear(message), onDied: this.#o.onDied });
    this.#speakSoon();
  }

  /** Finishes what runs, as long as a drain may take, and gives the rest back: nothing of it burns an attempt. */
  protected async onStop(): Promise<void> {
    const { drain, log, threads, clock } = this.#o;
    const until = clock.monotonic() + drain.timeoutMs;
    this.#draining = true;
    this.#link!.send({ say: "drain" });
    const { interrupted } = await this.#runs.drain({ ...drain, hurry: this.#hurry.signal });
    this.#speak();
    const undelivered = await this.#finish(until);
    await this.#link!.close();
    this.#link = null;
    await threads.stop();
    if (interrupted > 0) log.info({ jobs: interrupted }, "running jobs were interrupted and given back");
    if (undelivered > 0)
      log.error(
        { results: undelivered },
        "results could not be posted before the end; their jobs will run again",
      );
  }

  /** What a drain has left of its time is for results: while leaders change, there is nobody to take them for some seconds. */
  async #finish(until: number): Promise<number> {
    const { clock } = this.#o;
    const finished = new Promise<number>((resolve) => (this.#onFinished = resolve));
    let cancelLate = (): void => {};
    const late = Promise.withResolvers<number>();
    const within = (ms: number): void => {
      cancelLate();
      this.#link!.send({ say: "finish", withinMs: ms });
      cancelLate = clock.after(ms + FINISH_SLACK_MS, () => late.resolve(0));
    };
    const hurried = (): void => within(LAST_TRIES_MS);
    const { signal } = this.#hurry;
    within(signal.aborted ? LAST_TRIES_MS : Math.max(until - clock.monotonic(), LAST_TRIES_MS));
    signal.addEventListener("abort", hurried, { once: true });
    const undelivered = await Promise.race([finished, late.promise]);
    signal.removeEventListener("abort", hurried);
    cancelLate();
    return undelivered;
  }

  #hear(message: FromLink): void {
    switch (message.say) {
      case "offer":
        return this.#take(message.jobs, message.claim);
      case "cancel":
        return this.#runs.cancel(message.run, message.reason);
      case "lost":
        return this.#runs.lose(message.lease, message.why);
      case "finished":
        return this.#onFinished(message.undelivered);
    }
  }

  #take(jobs: readonly ClaimedJob[], claim: SharedArrayBuffer): void {
    this.#seen++;
    if (decide(claim, "taken")) {
      for (const job of jobs) {
        if (this.#draining) this.#say(job, { status: "released" });
        else this.#runs.start(job);
      }
    }
    this.#speakSoon();
  }

  #ended(run: JobRun, outcome: Outcome | null): void {
    this.#report(run);
    if (outcome) this.#say(run.claimed, endedOf(outcome));
    else this.#link?.send({ say: "forget", run: keyOf(run.claimed) });
    this.#speakSoon();
  }

  #say(job: ClaimedJob, ended: Ended): void {
    this.#link?.send({ say: "result", run: keyOf(job), ended });
  }

  /** A turn later: what many runs say within one turn of the event loop goes over together. */
  #speakSoon(): void {
    if (this.#speaking) return;
    this.#speaking = true;
    setImmediate(() => this.#speak());
  }

  #speak(): void {
    this.#speaking = false;
    for (const run of this.#reporting) this.#report(run);
    const running = this.#runs.active;
    this.#link?.send({ say: "room", free: this.#o.concurrency - running, running, seen: this.#seen });
  }

  #report(run: JobRun): void {
    this.#reporting.delete(run);
    const report = run.takeReport();
    if (!report) return;
    const { logs, progress } = report;
    this.#link?.send({ say: "report", run: keyOf(run.claimed), report: { logs, progress } });
  }
}

function keyOf({ lease, id, jobEpoch }: ClaimedJob): RunKey {
  return { lease, id, jobEpoch };
}

/** What a worker would write into the store, as it is posted. When a failed job runs again is the leader's decision. */
function endedOf(outcome: Outcome): Ended {
  switch (outcome.kind) {
    case "completed":
      return { status: "succeeded", result: outcome.result };
    case "retry":
    case "failed": {
      const { message, code, stack } = outcome.error;
      return { status: "failed", error: { message, code, stack, retryable: outcome.kind === "retry" } };
    }
    case "cancelled":
      return { status: "cancelled", error: { message: outcome.error.message, code: outcome.error.code } };
    case "interrupted":
    case "released":
      return { status: "released" };
  }
}
