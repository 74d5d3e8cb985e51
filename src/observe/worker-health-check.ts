/**
 * Collects the facts for `/workz` (core/health/work-health.ts). Every read of the store has a deadline, so that the
 * answer comes even while the store hangs.
 */

import { isSuspect, type Budgets } from "../core/jobs/job.ts";
import {
  judgeWork,
  UNANSWERED_MS,
  UNTAKEN_MS,
  type WorkFacts,
  type WorkVerdict,
} from "../core/health/work-health.ts";
import { servesQueue, type WorkerSettings } from "../jobs/run/worker-settings.ts";
import type { WorkerMonitor } from "../jobs/run/worker-monitor.ts";
import { within } from "../platform/loop.ts";
import type { Platform } from "../platform/platform.ts";
import type { JobStore } from "../store/store.ts";
import type { Cached } from "../platform/cached.ts";
import type { Backlog } from "./backlog.ts";
import type { Watchdog } from "./watchdog.ts";

export interface WorkReport extends WorkVerdict {
  readonly slots: number;
  readonly running: number;
  /** Jobs that are due in the queues that it serves; null when that is not known. */
  readonly ready: number | null;
  /** Since it last asked for jobs; null before the first time. */
  readonly lastClaimMs: number | null;
  readonly claimUnderWayMs: number | null;
}

export type WorkHealth = Pick<WorkerHealthCheck, "check">;

export interface WorkerHealthCheckOptions {
  readonly watch: Pick<WorkerMonitor, "claims">;
  readonly watchdog: Pick<Watchdog, "stuck">;
  readonly backlog: Pick<Cached<Backlog>, "get" | "ageMs">;
  readonly jobs: Pick<JobStore, "list">;
  readonly tasks: { names(): ReadonlySet<string> };
  readonly served: Pick<WorkerSettings, "queues" | "exceptQueues">;
  readonly slots: number;
  readonly worker: { readonly active: number; readonly running: boolean };
  readonly budgets: Budgets;
}

/** Whoever probes gives up after a second or a few. */
const LOOK_MS = 500;
/** What is older says nothing of now. */
const KNOWN_MS = 30_000;
/** Looked through for one that this node should have taken: so many queues, so many jobs of each. */
const QUEUES_MAX = 4;
const JOBS_MAX = 50;

export class WorkerHealthCheck {
  readonly #platform: Pick<Platform, "clock" | "state">;
  readonly #o: WorkerHealthCheckOptions;

  constructor(platform: Pick<Platform, "clock" | "state">, options: WorkerHealthCheckOptions) {
    this.#platform = platform;
    this.#o = options;
  }

  async check(): Promise<WorkReport> {
    const { watch, watchdog, tasks, slots, worker } = this.#o;
    const claims = watch.claims();
    // What was read before a claim began to hang says nothing of the jobs that it should have taken.
    const waiting = await this.#waiting(
      claims.unansweredMs < UNANSWERED_MS ? KNOWN_MS : Math.min(KNOWN_MS, claims.unansweredMs),
    );
    const ready = waiting && waiting.reduce((sum, { queued }) => sum + queued, 0);
    const suspicious = ready !== null && ready > 0 && claims.idleMs >= UNTAKEN_MS && worker.active < slots;
    const facts: WorkFacts = {
      state: this.#state(),
      slots,
      running: worker.active,
      tasks: tasks.names().size,
      claims,
      ready,
      oldestMs: suspicious ? await this.#oldest(waiting!.map(({ queue }) => queue)) : null,
      stuck: watchdog.stuck(),
    };
    return {
      ...judgeWork(facts),
      slots,
      running: facts.running,
      ready,
      lastClaimMs: claims.sentAgoMs,
      claimUnderWayMs: claims.underWayMs,
    };
  }

  #state(): WorkFacts["state"] {
    const { draining, forming } = this.#platform.state;
    if (draining) return "draining";
    return forming === null && this.#o.worker.running ? "working" : "starting";
  }

  /** Queues that this node serves, with what waits in them; null when that was not read so recently. */
  async #waiting(
    knownMs: number,
  ): Promise<readonly { readonly queue: string; readonly queued: number }[] | null> {
    const { backlog, served } = this.#o;
    const known = await backlog.get(LOOK_MS);
    if (!known || backlog.ageMs > knownMs) return null;
    return known.queues
      .filter(({ name, paused, counts }) => !paused && counts.queued > 0 && servesQueue(served, name))
      .map(({ name, counts }) => ({ queue: name, queued: counts.queued }));
  }

  /** How long a job waits that is certainly for us: of a task that we know, and that may run beside others. */
  async #oldest(queues: readonly string[]): Promise<number | null> {
    const looking = this.#look(queues.slice(0, QUEUES_MAX)).catch(() => null);
    return (await within(this.#platform.clock, LOOK_MS, looking)) ?? null;
  }

  async #look(queues: readonly string[]): Promise<number | null> {
    const { jobs, tasks, budgets } = this.#o;
    const pages = await Promise.all(
      queues.map((queue) => jobs.list({ status: "queued", queue, limit: JOBS_MAX })),
    );
    const ours = pages
      .flatMap((page) => page.jobs)
      .filter(({ task, crashes }) => tasks.names().has(task) && !isSuspect(crashes, budgets));
    const since = Math.min(...ours.map(({ runAt }) => runAt));
    return since === Infinity ? null : this.#platform.clock.now() - since;
  }
}
