/**
 * The slot of a worker (store/jobs.ts): what is put there starts without a claim.
 *
 *   closed ──a claim finds nothing, and there is room──> open ──no room, a drain, a new lease, an error──> closed
 *
 * The worker tends it between its claims: a look at the store finds what claims under way are about to get, too. Looks make up for
 * hints that were lost. One that arrives late after all names a job that is known by then.
 */

import type { GivenJob } from "../../channels/messages.ts";
import type { JobId, LeaseId } from "../../core/ids.ts";
import type { Clock } from "../../platform/clock.ts";
import { Mutex } from "../../platform/loop.ts";
import type { ClaimedJob, Run, Slot, SlotRequest, SlotStore } from "../../store/store.ts";

export interface WorkerSlotOptions {
  /** Left out where nothing is put into slots. */
  readonly slots: SlotStore | undefined;
  readonly request: () => SlotRequest;
  /** What the worker holds, and what it has not settled. */
  readonly known: () => readonly Run[];
  /** What the store has put there and nobody has told us. */
  readonly onFound: (job: ClaimedJob) => void;
  /** It was opened by a call that was sent then. */
  readonly onOpened: (lease: LeaseId, sentAt: number) => void;
  readonly onRefused: (lease: LeaseId) => void;
}

export interface Room {
  /** Whether a job would start at once. */
  readonly room: boolean;
  /** Whether to open it now: nothing else waits. */
  readonly opens: boolean;
}

/** So long may a job wait at worst if its hint is lost. */
const LOOK_MS = 1_000;
/** A worker that is full for longer closes its slot. Shorter, and bursts of short jobs open and close it all the time. */
export const FULL_MS = 25;
/** A handler that holds up the process for longer: jobs that are put there meanwhile would start sooner elsewhere. */
const BLOCKING_MS = 100;
const AFTER_BLOCKING_MS = 10_000;
/** Hints of jobs that were found may still come. */
const FOUND_MAX = 1_000;

export class WorkerSlot {
  readonly #clock: Clock;
  readonly #o: WorkerSlotOptions;
  readonly #turn = new Mutex();
  /** Under which it is open, or may be. */
  #lease: LeaseId | null = null;
  #unsure = false;
  #lookedAt = -Infinity;
  #closedUntil = -Infinity;
  /** Jobs whose hints came while the store was looked at. */
  #heard: Set<JobId> | null = null;
  readonly #found = new Set<JobId>();
  /** Jobs that are read after a hint, by their `ref`. */
  readonly #reading = new Set<unknown>();

  constructor(clock: Clock, options: WorkerSlotOptions) {
    this.#clock = clock;
    this.#o = options;
  }

  get open(): boolean {
    return this.#lease !== null;
  }

  isUnder(lease: LeaseId): boolean {
    return this.#lease === lease;
  }

  due({ room }: Room): boolean {
    if (!this.open) return false;
    return this.#unsure || this.#clock.monotonic() - this.#lookedAt >= (room ? LOOK_MS : FULL_MS);
  }

  /** The handlers of this process hold each other up. */
  noteHandler(ms: number): void {
    if (ms > BLOCKING_MS) this.#closedUntil = this.#clock.monotonic() + AFTER_BLOCKING_MS;
  }

  get blocked(): boolean {
    return this.#clock.monotonic() < this.#closedUntil;
  }

  /** The lease is lost, and the slot with it. */
  lost(lease: LeaseId): void {
    if (this.isUnder(lease)) this.forget();
  }

  forget(): void {
    this.#lease = null;
    this.#unsure = false;
  }

  /** A hint of this job has come: whether it is the first that is heard of it. */
  hears(id: JobId): boolean {
    this.#heard?.add(id);
    return !this.#found.delete(id);
  }

  /** Whether there is something to do. */
  wants(room: Room): boolean {
    if (!this.open) return room.opens;
    return !room.room || this.#isStale() || this.due(room);
  }

  /** A job that is known, or is being read, is not read again: by the answer, it could have run and be known no more. */
  async read({ lease, ref }: GivenJob): Promise<readonly ClaimedJob[]> {
    const { slots, known } = this.#o;
    if (!slots || this.#reading.has(ref) || known().some((run) => run.ref === ref)) return [];
    this.#reading.add(ref);
    try {
      return await slots.read(lease, [ref]);
    } finally {
      this.#reading.delete(ref);
    }
  }

  tend(room: Room): Promise<void> {
    return this.#turn.run(async () => {
      if (this.open && (!room.room || this.#isStale())) await this.#close();
      else if (this.wants(room)) await this.#keepOpen();
    });
  }

  #isStale(): boolean {
    return this.#unsure || this.#lease !== this.#o.request().lease;
  }

  async #keepOpen(): Promise<void> {
    const request = this.#o.request();
    const { lease } = request;
    const isNew = !this.open;
    const sentAt = this.#clock.monotonic();
    this.#lease = lease;
    const { opened, held, jobs } = await this.#ask<Slot>(async (slots, known) => slots.open(request, known));
    if (!opened) this.lost(lease);
    if (!held) return this.#o.onRefused(lease);
    if (opened && isNew) this.#o.onOpened(lease, sentAt);
    this.#take(jobs);
  }

  async #close(): Promise<void> {
    const lease = this.#lease!;
    const jobs = await this.#ask(async (slots, known) => slots.close(lease, known));
    this.lost(lease);
    this.#take(jobs);
  }

  /** If it fails, it may have been done. */
  async #ask<Answer>(call: (slots: SlotStore, known: readonly Run[]) => Promise<Answer>): Promise<Answer> {
    this.#unsure = true;
    this.#heard = new Set();
    const answer = await call(this.#o.slots!, this.#o.known());
    this.#unsure = false;
    this.#lookedAt = this.#clock.monotonic();
    return answer;
  }

  #take(jobs: readonly ClaimedJob[]): void {
    const heard = this.#heard;
    this.#heard = null;
    for (const job of jobs) {
      if (heard?.has(job.id)) continue;
      this.#found.add(job.id);
      this.#o.onFound(job);
    }
    for (const id of this.#found) {
      if (this.#found.size <= FOUND_MAX) break;
      this.#found.delete(id);
    }
  }
}
