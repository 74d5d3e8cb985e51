/**
 * What people want to know of the store, looked up at most once a second however many ask, and not at all while nobody does. Each part has
 * its own age: counting a million waiting jobs takes a database a while, so that is done again only after it has rested.
 *
 *   counts      after 1 s, or 20 times as long as the last count took; until the first is there, the last sample of the metrics
 *   waiting     the oldest of each queue, by index
 *   timings     of the newest finished jobs
 *   late, refused, agents     every few seconds
 */

import type { JobStatus } from "../core/job.ts";
import { quantiles, type Quantiles } from "../core/quantiles.ts";
import type { Schedule } from "../core/schedule.ts";
import type { Clock } from "../platform/clock.ts";
import type { QueueInfo, Store } from "../store/store.ts";
import { readSamples } from "./metrics-duty.ts";

export interface StoreLook {
  /** Wall time of the counts; null when they could not be had. */
  readonly countedAt: number | null;
  readonly jobs: Readonly<Record<JobStatus, number>>;
  /** As counted; empty while only a sample is known. */
  readonly queues: readonly QueueInfo[];
  readonly waiting: readonly { readonly queue: string; readonly since: number; readonly paused: boolean }[];
  readonly times: { readonly wait: Quantiles | null; readonly run: Quantiles | null; readonly of: number };
  readonly late: readonly { readonly schedule: string; readonly dueAt: number }[];
  readonly refused: { readonly count: number; readonly lastAt: number } | null;
  readonly agents: number;
  readonly trouble: string | null;
}

export interface StoreLookOptions {
  readonly store: Pick<Store, "jobs" | "queues" | "samples" | "journal" | "agents" | "problem">;
  readonly schedules: () => Promise<readonly Schedule[]>;
  readonly agentStaleMs: number;
  readonly clock: Clock;
}

const FRESH_MS = 1_000;
const SELDOM_MS = 5_000;
/** A count takes no more than this share of the time. */
const COUNT_REST = 20;
/** A sample stands in for a count so long. */
const SAMPLE_MS = 15_000;
/** A store that takes longer is in trouble, and whoever asks does not wait for it. */
const PATIENCE_MS = 1_000;
/** What takes longer is not waited for. */
const QUICK_MS = 10;
const TIMINGS = 500;
const TIMINGS_WITHIN_MS = 5 * 60_000;
const REFUSED_WITHIN_MS = 5 * 60_000;
const REFUSED_MAX = 200;

const NOTHING = { scheduled: 0, queued: 0, processing: 0, completed: 0, failed: 0, cancelled: 0 };

export class StoreLooks {
  readonly #o: StoreLookOptions;
  readonly #counts: Aged<{ queues: readonly QueueInfo[]; at: number }>;
  readonly #waiting: Aged<ReadonlyMap<string, number>>;
  readonly #times: Aged<StoreLook["times"]>;
  readonly #late: Aged<StoreLook["late"]>;
  readonly #refused: Aged<StoreLook["refused"]>;
  readonly #agents: Aged<number>;

  constructor(options: StoreLookOptions) {
    this.#o = options;
    const { clock, store, schedules } = options;
    this.#counts = new Aged(clock, FRESH_MS, async () => ({
      queues: await store.queues.list(),
      at: clock.now(),
    }));
    this.#waiting = new Aged(clock, FRESH_MS, () => store.queues.waitingSince());
    this.#times = new Aged(clock, FRESH_MS, async () => {
      const timings = await store.jobs.timings(TIMINGS, TIMINGS_WITHIN_MS);
      return {
        wait: quantiles(timings.map(({ waitMs }) => Math.max(0, waitMs))),
        run: quantiles(timings.map(({ runMs }) => runMs)),
        of: timings.length,
      };
    });
    this.#late = new Aged(clock, SELDOM_MS, async () => lateOf(await schedules(), clock.now()));
    this.#refused = new Aged(clock, SELDOM_MS, () => this.#refusedLately());
    this.#agents = new Aged(clock, SELDOM_MS, async () => {
      const since = clock.now() - options.agentStaleMs;
      return (await store.agents.list(false)).filter(({ lastSeenAt }) => lastSeenAt >= since).length;
    });
  }

  async look(): Promise<StoreLook> {
    const trouble = this.#o.store.problem;
    const parts = await Promise.all([
      this.#counted(),
      this.#waiting.get(),
      this.#times.get(),
      this.#late.get(),
      this.#refused.get(),
      this.#agents.get(),
    ]);
    const [counted, waiting, times, late, refused, agents] = parts.map(({ value }) => value) as [
      Counted | null,
      ReadonlyMap<string, number> | null,
      StoreLook["times"] | null,
      StoreLook["late"] | null,
      StoreLook["refused"],
      number | null,
    ];
    const paused = new Set(counted?.queues.filter((queue) => queue.paused).map(({ name }) => name));
    return {
      countedAt: counted?.at ?? null,
      jobs: counted?.jobs ?? NOTHING,
      queues: counted?.queues ?? [],
      waiting: [...(waiting ?? [])].map(([queue, since]) => ({ queue, since, paused: paused.has(queue) })),
      times: times ?? { wait: null, run: null, of: 0 },
      late: late ?? [],
      refused,
      agents: agents ?? 0,
      trouble: trouble ?? parts.find((part) => part.trouble !== null)?.trouble ?? null,
    };
  }

  async #counted(): Promise<Part<Counted>> {
    const { clock, store } = this.#o;
    const counting = this.#counts.get();
    this.#counts.restMs = Math.max(FRESH_MS, this.#counts.tookMs * COUNT_REST);
    if (!this.#counts.known) {
      const [sample] = await readSamples(store, 1).catch(() => []);
      if (sample && clock.now() - sample.at < SAMPLE_MS)
        return { value: { jobs: sample.jobs, queues: [], at: sample.at }, trouble: null };
    }
    const { value, trouble } = await counting;
    return { value: value && { jobs: total(value.queues), ...value }, trouble };
  }

  async #refusedLately(): Promise<StoreLook["refused"]> {
    const { store, clock } = this.#o;
    const since = clock.now() - REFUSED_WITHIN_MS;
    const entries = await store.journal.list({ kinds: ["write.refused"], limit: REFUSED_MAX });
    const lately = entries.filter(({ at }) => at >= since);
    if (lately.length === 0) return null;
    const count = lately.reduce((sum, { detail }) => sum + Number(detail["count"] ?? 1), 0);
    return { count, lastAt: lately[0]!.at };
  }
}

interface Counted {
  readonly jobs: Readonly<Record<JobStatus, number>>;
  readonly queues: readonly QueueInfo[];
  readonly at: number;
}

interface Part<Value> {
  /** Null when it could not be had and never was. */
  readonly value: Value | null;
  readonly trouble: string | null;
}

/**
 * A value that is looked up again when it is old and somebody asks. A look that takes long is not waited for once there is a value: that
 * is given with what was wrong when it was last tried to get a newer one.
 */
class Aged<Value> {
  /** So long it is not looked up again. */
  restMs: number;
  tookMs = 0;
  readonly #clock: Clock;
  readonly #look: () => Promise<Value>;
  #value: Value | null = null;
  #trouble: string | null = null;
  #at = -Infinity;
  #looking: Promise<void> | null = null;

  constructor(clock: Clock, restMs: number, look: () => Promise<Value>) {
    this.#clock = clock;
    this.restMs = restMs;
    this.#look = look;
  }

  get known(): boolean {
    return this.#value !== null;
  }

  async get(): Promise<Part<Value>> {
    if (this.#clock.monotonic() - this.#at >= this.restMs) this.#looking ??= this.#lookUp();
    if (this.#looking && (!this.known || this.tookMs < QUICK_MS)) await this.#patiently(this.#looking);
    return { value: this.#value, trouble: this.#trouble };
  }

  async #patiently(looking: Promise<void>): Promise<void> {
    const over = new AbortController();
    const late = this.#clock.sleep(PATIENCE_MS, over.signal).then(() => {
      if (!over.signal.aborted) this.#trouble = `no answer within ${PATIENCE_MS} ms`;
    });
    await Promise.race([looking, late]);
    over.abort();
  }

  async #lookUp(): Promise<void> {
    const startedAt = this.#clock.monotonic();
    try {
      this.#value = await this.#look();
      this.#trouble = null;
    } catch (error) {
      this.#trouble = error instanceof Error ? error.message : String(error);
    }
    this.#at = this.#clock.monotonic();
    this.tookMs = this.#at - startedAt;
    this.#looking = null;
  }
}

function total(queues: readonly QueueInfo[]): Record<JobStatus, number> {
  const sum = { ...NOTHING };
  for (const { counts } of queues) {
    for (const status of Object.keys(sum) as JobStatus[]) sum[status] += counts[status];
  }
  return sum;
}

function lateOf(schedules: readonly Schedule[], now: number): StoreLook["late"] {
  return schedules
    .filter(({ paused, nextAt }) => !paused && nextAt !== null && nextAt < now)
    .map(({ name, nextAt }) => ({ schedule: name, dueAt: nextAt! }));
}
