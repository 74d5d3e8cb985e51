/**
 * An agent: a worker that uses only the HTTP API of the cluster. It leases jobs from the leader, runs them and posts
 * their results. It needs no access to the database and is not a member of the cluster.
 *
 *   controllers <──HTTP──> link (a thread of its own) <──messages──> worker (this thread, with the handlers)
 *
 * A handler that blocks this thread delays other handlers and the acceptance of jobs, but no renewal, no heartbeat and
 * no finished result.
 */

import { DEFAULT_BUDGETS } from "../core/jobs/job.ts";
import { DEFAULT_RETRY } from "../core/jobs/retry.ts";
import type { JobSpans } from "../jobs/job-spans.ts";
import type { OutcomeRules } from "../jobs/run/run-outcome.ts";
import { ThreadPool } from "../jobs/run/thread-pool.ts";
import { Worker } from "../jobs/run/worker.ts";
import { WorkerMonitor } from "../jobs/run/worker-monitor.ts";
import type { TaskRegistry } from "../jobs/tasks/task-registry.ts";
import { within } from "../platform/loop.ts";
import type { Platform } from "../platform/platform.ts";
import { Lifecycle } from "../platform/service.ts";
import type { OpenLink } from "./link-messages.ts";
import { LinkPorts } from "./link-ports.ts";

export interface AgentOptions {
  readonly tasks: TaskRegistry;
  readonly openLink: OpenLink;
  readonly concurrency: number;
  readonly drain: { readonly timeoutMs: number; readonly cleanupMs: number };
  readonly spans?: JobSpans;
  /** The link is gone, and nothing can be reported any more: the process should end. */
  readonly onDied: (error: unknown) => void;
}

/** How long a hurried stop goes on posting results. Longer, and a stop without a leader ends as a kill. */
const LAST_TRIES_MS = 2_000;
/** What the link may take to answer beyond that. */
const FINISH_SLACK_MS = 1_000;
/** When a failed job runs again is decided by the leader, and so is how often one may be interrupted. */
const RULES: OutcomeRules = { budgets: DEFAULT_BUDGETS, retry: DEFAULT_RETRY, chance: () => 0.5 };

export class Agent extends Lifecycle {
  readonly #platform: Pick<Platform, "clock" | "log" | "identity">;
  readonly #o: AgentOptions;
  readonly #ports: LinkPorts;
  readonly #threads: ThreadPool;
  readonly #worker: Worker;
  #hurry = new AbortController();

  constructor(platform: Pick<Platform, "clock" | "log" | "identity">, options: AgentOptions) {
    super();
    this.#platform = platform;
    this.#o = options;
    const { identity } = platform;
    const { tasks, concurrency, spans, drain } = options;
    const abortGraceMs = drain.cleanupMs;
    this.#ports = new LinkPorts(tasks);
    this.#threads = new ThreadPool(platform, abortGraceMs);
    this.#worker = new Worker(platform, {
      claims: this.#ports.claims,
      results: this.#ports.results,
      lease: this.#ports.lease,
      tasks,
      threads: this.#threads,
      author: () => ({ node: identity.name, ownerEpoch: 0, leaderEpoch: 0 }),
      rules: RULES,
      // One that waits for the leader holds jobs for no other: nothing is claimed ahead.
      settings: {
        concurrency,
        abortGraceMs,
        prefetchMax: 0,
        leaseMs: 0,
        renewMs: 0,
        queues: null,
        exceptQueues: new Set<string>(),
      },
      watch: new WorkerMonitor(platform, { slots: concurrency, runsOnly: true, spans }),
      onChange: () => {},
    });
  }

  list(): readonly { readonly id: string; readonly task: string }[] {
    return this.#worker.list();
  }

  /** A stop that is under way does not wait for handlers any more. */
  hurry(): void {
    this.#hurry.abort();
  }

  protected async onStart(): Promise<void> {
    this.#hurry = new AbortController();
    await this.#threads.start();
    const { openLink, onDied } = this.#o;
    this.#ports.link = openLink({ hear: (message) => this.#ports.hear(message), onDied });
    await this.#worker.start();
  }

  /** Finishes what runs, as long as a drain may take, and gives the rest back: nothing of it burns an attempt. */
  protected async onStop(): Promise<void> {
    const { clock, log } = this.#platform;
    const { drain } = this.#o;
    const until = clock.monotonic() + drain.timeoutMs;
    const drained = await this.#worker.drain({ ...drain, hurry: this.#hurry.signal });
    const undelivered = await this.#finish(until);
    await this.#worker.stop();
    await this.#ports.link?.close();
    this.#ports.link = null;
    await this.#threads.stop();
    const interrupted = drained?.interrupted ?? 0;
    if (interrupted > 0) log.info({ jobs: interrupted }, "running jobs were interrupted and given back");
    if (undelivered > 0) {
      const fields = { results: undelivered };
      log.error(fields, "results could not be posted before the end; their jobs will run again");
    }
  }

  /** What a drain has left of its time is for results: while leaders change, no node takes them for some seconds. */
  async #finish(until: number): Promise<number> {
    const { clock } = this.#platform;
    const { signal } = this.#hurry;
    const finish = (ms: number, hurry?: AbortSignal): Promise<number | undefined> =>
      within(clock, ms + FINISH_SLACK_MS, this.#ports.finish(ms), hurry);
    const leftMs = Math.max(until - clock.monotonic(), LAST_TRIES_MS);
    const undelivered = signal.aborted ? undefined : await finish(leftMs, signal);
    return undelivered ?? (signal.aborted ? await finish(LAST_TRIES_MS) : undefined) ?? 0;
  }
}
