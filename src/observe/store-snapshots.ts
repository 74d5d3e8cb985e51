/**
 * Snapshots of the store for people: read at most once a second however many callers there are, and never without a
 * caller. Each part has its own age (platform/cached.ts): counting a million waiting jobs takes a database a
 * while, so it is repeated only after a pause.
 *
 *   backlog           counts, the oldest of each queue, agents; before the first read, the counts of the last metrics sample
 *   times             of the newest finished jobs
 *   late, refused     every few seconds
 */

import { sumOf } from "../core/format-figures.ts";
import type { JobStatus } from "../core/jobs/job.ts";
import { quantiles, type Quantiles } from "../core/health/quantiles.ts";
import type { Schedule } from "../core/schedules/schedule.ts";
import type { Platform } from "../platform/platform.ts";
import type { Agent } from "../store/agents.ts";
import type { DeadRows, QueueInfo, Store } from "../store/store.ts";
import { Cached } from "../platform/cached.ts";
import { readSamples, total } from "./metrics/metrics-duty.ts";

export interface StoreSnapshot {
  /** Wall time of the counts; null when they could not be had. */
  readonly countedAt: number | null;
  readonly jobs: Readonly<Record<JobStatus, number>>;
  /** As counted; empty while only a sample is known. */
  readonly queues: readonly QueueInfo[];
  readonly waiting: readonly { readonly queue: string; readonly since: number; readonly paused: boolean }[];
  /** Of the newest finished jobs. */
  readonly times: {
    readonly wait: Quantiles | null;
    readonly run: Quantiles | null;
    readonly of: number;
    readonly failed: number;
  };
  readonly late: readonly { readonly schedule: string; readonly dueAt: number }[];
  readonly refused: { readonly count: number; readonly lastAt: number } | null;
  readonly agents: number;
  readonly oldestSnapshot: DeadRows["oldestSnapshot"];
  readonly trouble: string | null;
}

export interface Backlog {
  readonly queues: readonly QueueInfo[];
  readonly agents: readonly Agent[];
  /** Null where the store has none. */
  readonly deadRows: DeadRows | null;
}

type Snapshotted = Pick<Store, "jobs" | "samples" | "journal" | "problem">;

const FRESH_MS = 1_000;
const SELDOM_MS = 5_000;
/** A sample stands in for a count so long. */
const SAMPLE_MS = 15_000;
/** Whoever asks does not wait longer for a store. */
const PATIENCE_MS = 1_000;
/** What takes longer is not waited for. */
const QUICK_MS = 10;
const TIMINGS = 500;
const LATELY_MS = 5 * 60_000;
const REFUSED_MAX = 200;

/** Fresh for those who only watch. */
export function backlogOf(
  { clock }: Pick<Platform, "clock">,
  store: Pick<Store, "queues" | "agents" | "deadRows">,
): Cached<Backlog> {
  return new Cached(clock, SELDOM_MS, async () => {
    const [queues, agents, deadRows] = await Promise.all([
      store.queues.list(),
      store.agents.list(false),
      store.deadRows?.() ?? null,
    ]);
    return { queues, agents, deadRows };
  });
}

export function storeSnapshots(
  { clock }: Pick<Platform, "clock">,
  store: Snapshotted,
  backlog: Cached<Backlog>,
  schedules: () => Promise<readonly Schedule[]>,
  agentStaleMs: number,
): { read(): Promise<StoreSnapshot> } {
  const times = new Cached(clock, FRESH_MS, async () => {
    const timings = await store.jobs.timings(TIMINGS, LATELY_MS);
    return {
      wait: quantiles(timings.map(({ waitMs }) => Math.max(0, waitMs))),
      run: quantiles(timings.map(({ runMs }) => runMs)),
      of: timings.length,
      failed: timings.filter(({ failed }) => failed).length,
    };
  });
  const late = new Cached(clock, SELDOM_MS, async () => lateOf(await schedules(), clock.now()));
  const refused = new Cached(clock, SELDOM_MS, async (): Promise<StoreSnapshot["refused"]> => {
    const since = clock.now() - LATELY_MS;
    const entries = await store.journal.list({ kinds: ["write.refused"], limit: REFUSED_MAX });
    const lately = entries.filter(({ at }) => at >= since);
    if (lately.length === 0) return null;
    return { count: sumOf(lately, ({ detail }) => Number(detail["count"] ?? 1)), lastAt: lately[0]!.at };
  });

  async function count(): Promise<Counted | null> {
    const isKnown = backlog.value !== null;
    const counting = backlog.get(patience(backlog), FRESH_MS);
    if (!isKnown) {
      const [sample] = await readSamples(store, 1).catch(() => []);
      if (sample && clock.now() - sample.at < SAMPLE_MS)
        return { jobs: sample.jobs, queues: [], agents: [], deadRows: null, at: sample.at };
    }
    const counted = await counting;
    return counted && { ...counted, jobs: total(counted.queues), at: clock.now() - backlog.ageMs };
  }

  return {
    async read() {
      const aged = [times, late, refused] as const;
      const [counted] = await Promise.all([count(), ...aged.map((each) => each.get(patience(each)))]);
      const { queues = [], agents = [], jobs = total([]), at = null } = counted ?? {};
      const living = clock.now() - agentStaleMs;
      const troubles = [store.problem, backlog.trouble, ...aged.map(({ trouble }) => trouble)];
      return {
        countedAt: at,
        jobs,
        queues,
        waiting: queues.flatMap(({ name, oldestAt, paused }) =>
          oldestAt === null ? [] : [{ queue: name, since: oldestAt, paused }],
        ),
        times: times.value ?? { wait: null, run: null, of: 0, failed: 0 },
        late: late.value ?? [],
        refused: refused.value,
        agents: agents.filter(({ lastSeenAt }) => lastSeenAt >= living).length,
        oldestSnapshot: counted?.deadRows?.oldestSnapshot ?? null,
        trouble: troubles.find(Boolean) ?? null,
      };
    },
  };
}

interface Counted extends Backlog {
  readonly jobs: Readonly<Record<JobStatus, number>>;
  readonly at: number;
}

/** What takes long is not waited for once there is a value. */
function patience({ value, tookMs }: Pick<Cached<unknown>, "value" | "tookMs">): number {
  return value !== null && tookMs >= QUICK_MS ? 0 : PATIENCE_MS;
}

function lateOf(schedules: readonly Schedule[], now: number): StoreSnapshot["late"] {
  return schedules
    .filter(({ paused, nextAt }) => !paused && nextAt !== null && nextAt < now)
    .map(({ name, nextAt }) => ({ schedule: name, dueAt: nextAt! }));
}
