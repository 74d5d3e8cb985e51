/**
 * Jobs that are claimed and not started yet: none for slow jobs, so that a crash strands none of them, and up to `prefetchMax` for short
 * ones, by the rate of finished jobs. Those that will not start soon go back to their queue, where urgent jobs go first.
 */

import type { JobId, LeaseId } from "../../core/ids.ts";
import type { Clock } from "../../platform/clock.ts";
import type { ClaimedJob } from "../../store/store.ts";
import type { WorkerSettings } from "./worker-settings.ts";

const RATE_WINDOW_MS = 100;
/** In less time, a few quick jobs say little about those that follow. */
const FORESEEN_AFTER_MS = 10;

/** Longer, and an urgent job waits behind jobs claimed ahead; shorter, and a short pause of the process gives them back. */
const LOOK_MS = 500;

export class ClaimBuffer {
  readonly #clock: Clock;
  readonly #settings: Pick<WorkerSettings, "concurrency" | "prefetchMax">;
  readonly #giveBack: (job: ClaimedJob) => void;
  #jobs: ClaimedJob[] = [];
  #next = 0;
  #askAt = 0;
  #finishedInWindow = 0;
  #windowFrom = 0;
  #lastWindow = 0;
  #addedAt = 0;
  #finishedSinceAdd = 0;
  #finishedSinceLook = 0;
  #cancelLook: (() => void) | null = null;

  constructor(
    clock: Clock,
    settings: Pick<WorkerSettings, "concurrency" | "prefetchMax">,
    giveBack: (job: ClaimedJob) => void,
  ) {
    this.#clock = clock;
    this.#settings = settings;
    this.#giveBack = giveBack;
  }

  get size(): number {
    return this.#jobs.length - this.#next;
  }

  /** Whether half of what is held has just gone: the time to ask for more, so that the answer comes before the rest is gone. */
  get halfGone(): boolean {
    return this.size === this.#askAt;
  }

  /** How many more to claim now. Asks only when half of what may be held is gone, to ask for many at once. */
  wanted(running: number): number {
    const { concurrency, prefetchMax } = this.#settings;
    const held = running + this.size;
    const capacity = concurrency + Math.min(prefetchMax, Math.max(this.pace, this.#foreseen()));
    const room = capacity - held;
    return held < concurrency || room * 2 >= capacity ? room : 0;
  }

  noteFinished(): void {
    this.#finishedInWindow++;
    this.#finishedSinceAdd++;
    this.#finishedSinceLook++;
  }

  add(jobs: readonly ClaimedJob[]): void {
    this.#jobs = this.size === 0 ? [...jobs] : [...this.#jobs.slice(this.#next), ...jobs];
    this.#next = 0;
    this.#addedAt = this.#clock.monotonic();
    this.#finishedSinceAdd = 0;
    this.#askAt = Math.floor((this.size - this.#settings.concurrency) / 2);
    this.#lookLater();
  }

  take(): ClaimedJob | undefined {
    return this.size > 0 ? this.#jobs[this.#next++] : undefined;
  }

  takeAll(): ClaimedJob[] {
    const rest = this.#jobs.slice(this.#next);
    this.#jobs = [];
    this.#next = 0;
    this.#cancelLook?.();
    this.#cancelLook = null;
    return rest;
  }

  takeUnder(lease: LeaseId): ClaimedJob[] {
    const taken: ClaimedJob[] = [];
    const rest: ClaimedJob[] = [];
    for (const job of this.takeAll()) (job.lease === lease ? taken : rest).push(job);
    if (rest.length > 0) this.add(rest);
    return taken;
  }

  remove(id: JobId): ClaimedJob | undefined {
    const at = this.#jobs.findIndex((job, index) => index >= this.#next && job.id === id);
    return at < 0 ? undefined : this.#jobs.splice(at, 1)[0];
  }

  all(): readonly ClaimedJob[] {
    return this.#jobs.slice(this.#next);
  }

  some(test: (job: ClaimedJob) => boolean): boolean {
    for (let i = this.#next; i < this.#jobs.length; i++) if (test(this.#jobs[i]!)) return true;
    return false;
  }

  /**
   * Also at few: the slots may be busy for hours with what came before them. Keeps as many as have ended since the last look: after a
   * pause of the process the rate of a short while would be none, and all would go back.
   */
  #lookLater(): void {
    if (this.#cancelLook || this.size === 0) return;
    this.#finishedSinceLook = 0;
    this.#cancelLook = this.#clock.after(LOOK_MS, () => {
      this.#cancelLook = null;
      for (const job of this.#jobs.splice(this.#next + this.#finishedSinceLook)) this.#giveBack(job);
      this.#lookLater();
    });
  }

  /** How many jobs will end in a window if they go on as since the last claim: with a backlog, a worker is soon at full speed. */
  #foreseen(): number {
    const tookMs = Math.max(this.#clock.monotonic() - this.#addedAt, FORESEEN_AFTER_MS);
    return Math.round((this.#finishedSinceAdd * RATE_WINDOW_MS) / tookMs);
  }

  /** How many jobs end in a window, of late. */
  get pace(): number {
    const now = this.#clock.monotonic();
    const tookMs = now - this.#windowFrom;
    if (tookMs >= RATE_WINDOW_MS) {
      this.#lastWindow = Math.round((this.#finishedInWindow * RATE_WINDOW_MS) / tookMs);
      this.#finishedInWindow = 0;
      this.#windowFrom = now;
    }
    return Math.max(this.#lastWindow, this.#finishedInWindow);
  }
}
