/** Collects the facts for `/workz`. Every read of the store has a deadline, so that the answer comes while it hangs. */

import { isSuspect, type Budgets } from "../core/jobs/job.ts";
import {
  judgeWork,
  UNANSWERED_MS,
  UNTAKEN_MS,
  type WorkFacts,
  type WorkVerdict,
} from "../core/health/work-health.ts";
import { worksOn } from "../core/push/dispatch.ts";
import type { WorkerSettings } from "../jobs/run/worker-settings.ts";
import type { WorkerMonitor } from "../jobs/run/worker-monitor.ts";
import { within } from "../platform/loop.ts";
import type { Platform } from "../platform/platform.ts";
import type { JobStore, QueueInfo } from "../store/store.ts";
import type { Cached } from "../platform/cached.ts";
import type { Backlog } from "./store-snapshots.ts";
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

interface WorkFactSources {
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
const KNOWN_MS = 30_000;
/** Looked through for one that this node should have taken: so many queues, so many jobs of each. */
const QUEUES_MAX = 4;
const JOBS_MAX = 50;

export function workerHealthCheck(
  { clock, state }: Pick<Platform, "clock" | "state">,
  { watch, watchdog, backlog, jobs, tasks, served, slots, worker, budgets }: WorkFactSources,
): { check(): Promise<WorkReport> } {
  function stateNow(): WorkFacts["state"] {
    if (state.draining) return "draining";
    return state.forming === null && worker.running ? "working" : "starting";
  }

  /** Queues that this node serves and in which jobs wait; null when that was not read so recently. */
  async function waitingIn(knownMs: number): Promise<readonly QueueInfo[] | null> {
    const known = await backlog.get(LOOK_MS);
    if (!known || backlog.ageMs > knownMs) return null;
    return known.queues.filter(
      ({ name, paused, counts }) => !paused && counts.queued > 0 && worksOn(served, name),
    );
  }

  /** How long a job waits that is certainly for us: of a task that we know, and that may run beside others. */
  async function oldestOf(queues: readonly QueueInfo[]): Promise<number | null> {
    const pages = await Promise.all(
      queues
        .slice(0, QUEUES_MAX)
        .map(({ name }) => jobs.list({ status: "queued", queue: name, limit: JOBS_MAX })),
    );
    const ours = pages
      .flatMap((page) => page.jobs)
      .filter(({ task, crashes }) => tasks.names().has(task) && !isSuspect(crashes, budgets));
    const since = Math.min(...ours.map(({ runAt }) => runAt));
    return since === Infinity ? null : clock.now() - since;
  }

  return {
    async check() {
      const claims = watch.claims();
      // What was read before a claim began to hang says nothing of the jobs that it should have taken.
      const knownMs =
        claims.unansweredMs < UNANSWERED_MS ? KNOWN_MS : Math.min(KNOWN_MS, claims.unansweredMs);
      const waiting = await waitingIn(knownMs);
      const ready = waiting && waiting.reduce((sum, { counts }) => sum + counts.queued, 0);
      const { active: running } = worker;
      const isSuspicious = ready !== null && ready > 0 && claims.idleMs >= UNTAKEN_MS && running < slots;
      const looking = isSuspicious ? oldestOf(waiting!).catch(() => null) : null;
      const verdict = judgeWork({
        state: stateNow(),
        slots,
        running,
        tasks: tasks.names().size,
        claims,
        ready,
        oldestMs: (looking && (await within(clock, LOOK_MS, looking))) ?? null,
        stuck: watchdog.stuck(),
      });
      const { sentAgoMs: lastClaimMs, underWayMs: claimUnderWayMs } = claims;
      return { ...verdict, slots, running, ready, lastClaimMs, claimUnderWayMs };
    },
  };
}
