/**
 * Runs leased jobs with the tasks, threads and contexts of a worker. It knows leases only by name, and does not know
 * controllers.
 */

import type { AbortReason } from "../core/jobs/job.ts";
import { DEFAULT_BUDGETS } from "../core/jobs/job.ts";
import { DEFAULT_RETRY } from "../core/jobs/retry.ts";
import { traceFields } from "../core/trace.ts";
import { IdleWait } from "../jobs/run/idle-wait.ts";
import { invoke } from "../jobs/run/invoke.ts";
import { JobRun } from "../jobs/run/job-run.ts";
import type { JobSpans } from "../jobs/job-spans.ts";
import { outcomeOf, type Ending, type OutcomeRules } from "../jobs/run/outcome.ts";
import { RunDeadlines } from "../jobs/run/run-deadlines.ts";
import { readPayload } from "../jobs/tasks/task.ts";
import type { TaskRegistry } from "../jobs/tasks/task-registry.ts";
import type { ThreadPool } from "../jobs/run/thread-pool.ts";
import type { Clock } from "../platform/clock.ts";
import type { Log } from "../platform/log.ts";
import type { ClaimedJob, Outcome } from "../store/store.ts";
import type { RunKey } from "./controller-link-messages.ts";

export interface AgentRunsOptions {
  readonly tasks: TaskRegistry;
  readonly threads: ThreadPool;
  readonly clock: Clock;
  readonly log: Log;
  /** How long an aborted handler may take to end before it is given up. */
  readonly abortGraceMs: number;
  readonly spans?: JobSpans;
  /** There is something to report of this run. */
  readonly onReport: (run: JobRun) => void;
  /** Null when there is nothing to say: its lease is lost. */
  readonly onEnd: (run: JobRun, outcome: Outcome | null) => void;
}

/** What handlers have for tidying up when a stop is hurried: the whole stop has five seconds. */
const HURRIED_CLEANUP_MS = 1_000;

/** When a failed job runs again is decided by the leader, and so is how often one may be interrupted. */
const RULES: OutcomeRules = { budgets: DEFAULT_BUDGETS, retry: DEFAULT_RETRY, chance: () => 0.5 };

export class AgentRuns {
  readonly #o: AgentRunsOptions;
  readonly #running = new Map<string, JobRun>();
  readonly #deadlines: RunDeadlines;
  readonly #idle: IdleWait;
  readonly #hooks;

  constructor(options: AgentRunsOptions) {
    this.#o = options;
    const { clock } = options;
    this.#deadlines = new RunDeadlines({
      clock,
      runs: () => this.#running.values(),
      onDue: (run) => (run.aborted ? this.#abandon(run) : this.#abort(run, "timeout", null)),
    });
    this.#idle = new IdleWait({ clock, busy: () => this.#running.size > 0 });
    this.#hooks = {
      now: () => clock.now(),
      onReport: (run: JobRun) => {
        if (!run.abandoned) options.onReport(run);
      },
    };
  }

  get active(): number {
    return this.#running.size;
  }

  list(): { readonly id: string; readonly task: string }[] {
    return [...this.#running.values()].map(({ claimed }) => ({ id: claimed.id, task: claimed.task }));
  }

  start(job: ClaimedJob): void {
    void this.#run(job);
  }

  cancel({ id, jobEpoch }: RunKey, reason: string | null): void {
    const run = this.#running.get(id);
    if (run?.claimed.jobEpoch === jobEpoch) this.#abort(run, "cancel", reason ?? "cancelled");
  }

  /** Others may run these jobs by now; whatever we would say of them is refused, so nothing is said. */
  lose(lease: string, why: string): void {
    const runs = [...this.#running.values()].filter(({ claimed }) => claimed.lease === lease);
    if (runs.length === 0) return;
    this.#o.log.error({ jobs: runs.length, lease }, `the lease on running jobs is lost: ${why}`);
    for (const run of runs) this.#abort(run, "lease_lost", `the lease is lost: ${why}`);
  }

  /** Lets what runs come to its end, tells the rest to stop `cleanupMs` before the timeout, and gives up what is left then. */
  async drain(limits: {
    timeoutMs: number;
    cleanupMs: number;
    hurry?: AbortSignal;
  }): Promise<{ interrupted: number }> {
    const { timeoutMs, cleanupMs, hurry } = limits;
    await this.#idle.within(timeoutMs - cleanupMs, hurry);
    const interrupted = this.#running.size;
    for (const run of this.#running.values()) this.#abort(run, "drain", "the agent is being stopped");
    await this.#idle.within(cleanupMs, hurry);
    if (hurry?.aborted) await this.#idle.within(Math.min(cleanupMs, HURRIED_CLEANUP_MS));
    for (const run of this.#running.values()) this.#abandon(run);
    this.#deadlines.stop();
    return { interrupted };
  }

  async #run(job: ClaimedJob): Promise<void> {
    const run = new JobRun(job, this.#o.clock.monotonic(), this.#hooks);
    const earlier = this.#running.get(job.id);
    if (earlier) this.#replace(earlier);
    this.#running.set(job.id, run);
    const { spans } = this.#o;
    if (spans?.on) run.span = spans.run(job);
    this.#deadlines.watch(run.deadline);
    const task = this.#o.tasks.get(job.task);
    let ending: Ending;
    try {
      if (!task) throw new UnknownTask(job.task);
      const payload = await readPayload(task, job.payload);
      ending = { ended: "returned", result: await invoke(task, payload, run, this.#o.threads) };
    } catch (error) {
      ending = { ended: "threw", error };
    }
    this.#end(run, ending);
  }

  #end(run: JobRun, ending: Ending): void {
    if (run.abandoned) return;
    const { claimed } = run;
    this.#running.delete(claimed.id);
    const aborted = { why: run.aborted, message: run.abortMessage };
    const outcome = outcomeOf(claimed, ending, aborted, undefined, RULES);
    if (run.span) this.#o.spans!.ran(run.span, outcome);
    this.#o.onEnd(run, outcome);
    if (this.#running.size === 0) this.#idle.tell();
  }

  #abort(run: JobRun, why: AbortReason, message: string | null): void {
    if (!run.abort(why, message)) return;
    run.deadline = this.#o.clock.monotonic() + this.#o.abortGraceMs;
    this.#deadlines.watch(run.deadline);
  }

  /** The handler did not end in time: its job is settled without it, and its slot is free again. */
  #abandon(run: JobRun): void {
    const { id, task, trace } = run.claimed;
    this.#o.log.warn(
      { jobId: id, task, why: run.aborted, ...traceFields(trace) },
      "the handler did not end in time and was given up",
    );
    this.#end(run, { ended: "abandoned" });
    run.abandoned = true;
  }

  /** After a lost lease a job may come back to us before its handler has ended, or has even heard of the loss. */
  #replace(earlier: JobRun): void {
    this.#abort(earlier, "lease_lost", "the lease is lost: the job was given out again");
    this.#abandon(earlier);
  }
}

/** Not ours to run: a failure and not a release, which would bring it back at once. */
class UnknownTask extends Error {
  readonly code = "UNKNOWN_TASK";

  constructor(task: string) {
    super(`this agent has no task ${task}, and did not ask for it`);
  }
}
