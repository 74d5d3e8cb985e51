/**
 * The leader's duty to fire schedules. Its knowledge was read from the store in its term, and every write carries the term as its fence.
 *
 *     read all (at first, then every few seconds)   a hint: read what changed
 *              '--------------------> known schedules <---------'
 *                                          |  one timer, to the first that is due
 *                                plan (core) -> store.fire(expectedNextAt, fence) -> nextAt
 *
 * The store notes each occurrence under a unique key with its job, so a leader that is late, duplicated or without an answer fires
 * nothing twice. STALE_EPOCH ends the duty: another node has a newer term.
 */

import type { Channels, Message } from "../../channels/channels.ts";
import { topics } from "../../channels/channel-names.ts";
import type { Duty, Term } from "../../core/leadership/term.ts";
import { hasCode, reasonOf } from "../../core/errors.ts";
import { jobId } from "../../core/ids.ts";
import { type RetryPolicy, retryDelayMs } from "../../core/jobs/retry.ts";
import { type DuePlan, type Schedule, planDue } from "../../core/schedules/schedule.ts";
import { atOnce, Pause } from "../../platform/loop.ts";
import type { Platform } from "../../platform/platform.ts";
import type { Author, Firing, FireVerdict, NewJob, ScheduleStore } from "../../store/store.ts";
import { compileTiming } from "./cron.ts";

export interface ScheduleDutyOptions {
  readonly store: { readonly schedules: Pick<ScheduleStore, "list" | "get" | "fire"> };
  readonly channels: Pick<Channels, "publish" | "subscribe">;
  /** The numbers of this node; the leader epoch is taken from the term. */
  readonly author: () => Author;
  /** The schedules are replicated among peers: the nodes that store the jobs and compare the term emit what they refuse. */
  readonly replicated?: boolean;
  readonly sink?: ScheduleSink;
}

export interface ScheduleSink {
  known(schedules: number): void;
  /** Wall time of the occurrence that comes next, or is overdue; null when there is none, or when the term is over. */
  next(at: number | null): void;
  fired(verdict: FireVerdict | "failed", lateMs: number): void;
}

/**
 * The net under lost hints and jumps of the wall clock. Shorter, and thousands of schedules are read for nothing; longer, and a
 * schedule put elsewhere may miss its first occurrence.
 */
const READ_EVERY_MS = 5_000;
/** Reading takes at most this share of the time, however many schedules there are. */
const READING_SHARE_MAX = 0.05;
/** More changes than this at once are cheaper to read in one go. */
const NAMES_READ_MAX = 50;
/** Fires under way at once: a database answers them together, and an old leader notices soon that it is one. */
const FIRES_MAX = 16;
const RETRY: RetryPolicy = { delayMs: 100, factor: 2, maxDelayMs: 5_000, jitter: 0.25 };

export function scheduleDuty(platform: Platform, options: ScheduleDutyOptions): Duty {
  return (term, signal) => new ScheduleTerm({ ...platform, ...options }, term, signal).run();
}

interface Known {
  schedule: Schedule;
  /** When it is to be fired, or tried again; null while it is paused, ended or broken. */
  dueAt: number | null;
  /** Fires in a row that did not go through. */
  failures: number;
  /** The complaint about it that has been logged already. */
  complaint: string | null;
}

class ScheduleTerm {
  readonly #o: Platform & ScheduleDutyOptions & { readonly term: Term; readonly signal: AbortSignal };
  readonly #known = new Map<string, Known>();
  readonly #changed = new Set<string>();
  readonly #readyQueues = new Set<string>();
  #readAllAt = -Infinity;
  #readFailures = 0;
  #superseded = false;
  readonly #pause: Pause;

  constructor(options: Platform & ScheduleDutyOptions, term: Term, signal: AbortSignal) {
    this.#o = { ...options, term, signal };
    this.#pause = new Pause(options.clock);
  }

  get #over(): boolean {
    return this.#o.signal.aborted || this.#superseded;
  }

  async run(): Promise<void> {
    const { channels } = this.#o;
    const hints = channels.subscribe(topics.schedulesChanged, (message) => this.#hear(message));
    try {
      while (!this.#over) {
        await this.#read();
        await this.#fireDue();
        await this.#rest();
      }
    } finally {
      this.#o.sink?.known(0);
      this.#o.sink?.next(null);
      await hints.close();
    }
  }

  #hear(message: Message): void {
    this.#changed.add(message.key);
    this.#pause.wake();
  }

  async #read(): Promise<void> {
    if (this.#o.clock.monotonic() < this.#readAllAt && this.#changed.size === 0) return;
    const names = [...this.#changed];
    const some = this.#o.clock.monotonic() < this.#readAllAt && names.length <= NAMES_READ_MAX;
    this.#changed.clear();
    try {
      await (some ? this.#readSome(names) : this.#readAll());
      this.#readFailures = 0;
    } catch (error) {
      const delayMs = retryDelayMs(++this.#readFailures, this.#o.random.chance(), RETRY);
      this.#readAllAt = this.#o.clock.monotonic() + delayMs;
      this.#o.log.warn({ err: error, delayMs }, "schedules cannot be read; trying again");
    }
  }

  async #readSome(names: readonly string[]): Promise<void> {
    for (const name of names) {
      const schedule = await this.#o.store.schedules.get(name);
      if (schedule) this.#adopt(schedule);
      else this.#known.delete(name);
    }
  }

  async #readAll(): Promise<void> {
    const startedAt = this.#o.clock.monotonic();
    const schedules = await this.#o.store.schedules.list();
    const gone = new Set(this.#known.keys());
    for (const schedule of schedules) {
      gone.delete(schedule.name);
      this.#adopt(schedule);
    }
    for (const name of gone) this.#known.delete(name);
    this.#o.sink?.known(schedules.length);
    if (this.#readAllAt === -Infinity) {
      this.#o.log.info({ schedules: schedules.length, epoch: this.#o.term.epoch }, "schedules loaded");
    }
    const now = this.#o.clock.monotonic();
    this.#readAllAt = now + Math.max(READ_EVERY_MS, (now - startedAt) / READING_SHARE_MAX);
  }

  #adopt(schedule: Schedule): void {
    const { name, nextAt } = schedule;
    const known = this.#known.get(name) ?? { schedule, dueAt: null, failures: 0, complaint: null };
    const moved = known.schedule.nextAt !== nextAt;
    known.schedule = schedule;
    this.#known.set(name, known);
    if (moved) known.failures = 0;
    if (schedule.paused || nextAt === null) return takeOut(known);
    try {
      compileTiming(schedule.timing);
    } catch (error) {
      return this.#setAside(known, error);
    }
    known.complaint = null;
    // One that waits for another try goes on waiting, or reading would undo the back-off.
    if (known.failures === 0) known.dueAt = nextAt;
  }

  /** Does not fire until it is changed; the others go on. */
  #setAside(known: Known, error: unknown): void {
    takeOut(known);
    const complaint = reasonOf(error);
    if (known.complaint === complaint) return;
    known.complaint = complaint;
    const fields = { schedule: known.schedule.name, err: error };
    this.#o.log.error(fields, "this schedule cannot be computed and does not fire; put it anew");
  }

  async #fireDue(): Promise<void> {
    this.#o.sink?.next(this.#nextAt());
    const now = this.#o.clock.now();
    const due = [...this.#known.values()].filter(({ dueAt }) => dueAt !== null && dueAt <= now);
    if (due.length === 0) return;
    due.sort((a, b) => a.dueAt! - b.dueAt!);
    for (const known of due) known.dueAt = null;
    await atOnce(FIRES_MAX, due.values(), async (known) => {
      if (!this.#over) await this.#fire(known);
    });
    await this.#announceJobs();
  }

  /** A look at each of thousands takes less than a millisecond, and they fall due together at full seconds. */
  #nextAt(): number | null {
    let first = Infinity;
    for (const { dueAt } of this.#known.values()) if (dueAt !== null && dueAt < first) first = dueAt;
    return first === Infinity ? null : first;
  }

  async #fire(known: Known): Promise<void> {
    const { schedule } = known;
    const { name } = schedule;
    const { events } = this.#o;
    const { sink, replicated = false } = this.#o;
    let plan: DuePlan;
    try {
      plan = planDue(schedule, this.#o.clock.now(), compileTiming(schedule.timing).following);
    } catch (error) {
      return this.#setAside(known, error);
    }
    // The wall clock was set back meanwhile.
    if (plan.occurrences.length === 0) {
      known.dueAt = schedule.nextAt;
      return;
    }

    const firing: Firing = {
      schedule: name,
      occurrences: plan.occurrences.map((occurrence) => ({
        ...occurrence,
        job: occurrence.do === "fire" ? this.#jobOf(schedule, occurrence.at) : null,
      })),
      nextAt: plan.nextAt,
      expectedNextAt: schedule.nextAt,
      overlap: schedule.overlap,
    };
    const author: Author = { ...this.#o.author(), leaderEpoch: this.#o.term.epoch };
    try {
      const verdicts = await this.#o.store.schedules.fire(firing, author, this.#o.term);
      const now = this.#o.clock.now();
      verdicts.forEach((verdict, at) => sink?.fired(verdict, now - plan.occurrences[at]!.at));
      if (verdicts.includes("changed")) {
        // Replaced, paused or removed since it was read, or an earlier fire did arrive whose answer was lost.
        this.#tryLater(known);
        this.#changed.add(name);
        return;
      }
      if (verdicts.includes("fired")) this.#readyQueues.add(schedule.queue);
      const jobs = firing.occurrences.flatMap(({ job }, at) =>
        job && verdicts[at] === "fired" ? [job] : [],
      );
      if (jobs.length > 0) events.emit("schedule.fired", { jobs, storedHere: !replicated });
    } catch (error) {
      if (hasCode(error, "STALE_EPOCH")) {
        this.#superseded = true;
        if (!replicated) events.refused("schedules.fire", error);
        this.#o.log.warn({ epoch: this.#o.term.epoch, err: error }, "a newer term fires the schedules");
        return;
      }
      const delayMs = this.#tryLater(known);
      sink?.fired("failed", 0);
      const fields = { schedule: name, err: error, delayMs };
      this.#o.log.warn(fields, "a schedule could not be fired; trying again");
      return;
    }
    if (plan.passedOver) {
      this.#o.log.warn({ schedule: name, ...plan.passedOver }, "missed occurrences were passed over");
    }
    known.failures = 0;
    known.schedule = { ...schedule, nextAt: plan.nextAt };
    known.dueAt = plan.nextAt;
  }

  #tryLater(known: Known): number {
    const delayMs = retryDelayMs(++known.failures, this.#o.random.chance(), RETRY);
    known.dueAt = this.#o.clock.now() + delayMs;
    return delayMs;
  }

  #jobOf(schedule: Schedule, at: number): NewJob {
    const { task, queue, priority, payload, maxAttempts, timeoutMs } = schedule;
    const { identity, random } = this.#o;
    const id = jobId(identity.name, random.timedUuid());
    const asked = { task, queue, priority, payload, maxAttempts, timeoutMs };
    // `runAt` tells the handler which occurrence it serves, and keeps made-up runs in their order.
    return { id, ...asked, delayMs: 0, runAt: at, idempotencyKey: null };
  }

  /** A hint to idle workers. They poll as well, so a lost one costs a little time and nothing else. */
  async #announceJobs(): Promise<void> {
    const messages = [...this.#readyQueues].map((queue) => ({ key: queue, body: { queue } }));
    this.#readyQueues.clear();
    if (messages.length === 0) return;
    try {
      await this.#o.channels.publish(topics.jobsReady, messages);
    } catch (error) {
      this.#o.log.warn({ err: error }, "workers could not be notified of scheduled jobs");
    }
  }

  async #rest(): Promise<void> {
    if (this.#over || this.#changed.size > 0) return;
    const dueAt = this.#nextAt();
    this.#o.sink?.next(dueAt);
    const untilDueMs = dueAt === null ? Infinity : dueAt - this.#o.clock.now();
    const ms = Math.min(untilDueMs, this.#readAllAt - this.#o.clock.monotonic());
    this.#pause.clear();
    if (ms > 0) await this.#pause.sleep(ms, this.#o.signal);
  }
}

function takeOut(known: Known): void {
  known.failures = 0;
  known.dueAt = null;
}
