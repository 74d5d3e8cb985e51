/**
 * Keeps a worker supplied: claims when there is room, again after each hint, and every second. Between claims it tends the slot.
 * A claim and a look into the slot are never under way together: the look would find what the claim is about to get.
 */

import type { Channels } from "../../channels/channels.ts";
import type { GivenJob } from "../../channels/messages.ts";
import { hasCode } from "../../core/errors.ts";
import type { LeaseId } from "../../core/ids.ts";
import { isSuspect, type Budgets } from "../../core/jobs/job.ts";
import { STORE_RETRY_MS } from "../../platform/loop.ts";
import type { Platform } from "../../platform/platform.ts";
import type { Author, Claimed, ClaimedJob, SlotRequest } from "../../store/store.ts";
import type { TaskRegistry } from "../tasks/task-registry.ts";
import type { ClaimBuffer } from "./claim-buffer.ts";
import type { ResultWriter } from "./result-writer.ts";
import type { RunningRuns } from "./running-runs.ts";
import type { WorkerMonitor } from "./worker-monitor.ts";
import type { ClaimPort, LeasePort } from "./worker-ports.ts";
import type { WorkerSettings } from "./worker-settings.ts";
import { FULL_MS, type Room, WorkerSlot } from "./worker-slot.ts";

export interface ClaimLoopOptions {
  readonly claims: ClaimPort;
  readonly lease: LeasePort;
  readonly results: ResultWriter;
  readonly buffer: ClaimBuffer;
  readonly running: RunningRuns;
  /** Runs that take up a place: those that wait for another job do not. */
  readonly active: () => number;
  readonly watch: WorkerMonitor;
  readonly tasks: TaskRegistry;
  readonly settings: WorkerSettings;
  readonly budgets: Budgets;
  readonly author: () => Author;
  readonly channels?: Pick<Channels, "privateChannel"> | undefined;
  /** Whether a job that is in the buffer would start at once. */
  readonly hasPlace: () => boolean;
  /** The buffer may have something to start. */
  readonly onJobs: () => void;
}

/** The net under wake-ups and timers: so long may a job wait at worst if all of them fail. */
const POLL_MS = 1_000;
/** Jobs that end in a tenth of a second: with more, there are batches to claim, and a slot would only open and close. */
const SLOT_PACE_MAX = 50;

export class ClaimLoop {
  readonly #o: Pick<Platform, "clock" | "log" | "identity"> & ClaimLoopOptions;
  readonly slot: WorkerSlot;
  #claiming: Promise<void> | null = null;
  #claimAgain = false;
  #closed = true;
  #closingSlot: Promise<void> | null = null;
  #cancelPoll: (() => void) | null = null;

  constructor(
    { clock, log, identity }: Pick<Platform, "clock" | "log" | "identity">,
    options: ClaimLoopOptions,
  ) {
    this.#o = { clock, log, identity, ...options };
    const { claims, lease, results, buffer, running } = options;
    this.slot = new WorkerSlot(clock, {
      slots: claims.slots,
      request: () => this.#claimant(),
      known: () => [...running.all().map(({ claimed }) => claimed), ...buffer.all(), ...results.unsettled()],
      onFound: (job) => this.#take(job),
      onOpened: (id, sentAt) => {
        if (!lease.granted(id, sentAt)) this.slot.lost(id);
      },
      onRefused: (id) => lease.refused(id),
    });
  }

  /** What must have ended before no more jobs come; null if nothing. */
  get underWay(): Promise<void> | null {
    return this.#claiming ?? this.#closingSlot;
  }

  start(): void {
    this.#closed = false;
    this.wake();
  }

  /** As before it was closed. */
  async open(): Promise<void> {
    this.#closed = false;
    await this.#closingSlot;
    this.#o.claims.open?.();
    this.wake();
  }

  /** No more claims; what comes in spite of that goes back. */
  close(): void {
    this.#closed = true;
    void this.#o.claims.close?.();
    this.#closingSlot ??= this.#closeSlot().finally(() => (this.#closingSlot = null));
  }

  stop(): void {
    this.#cancelPoll?.();
    this.slot.forget();
  }

  wake(): void {
    if (this.#claiming) this.#claimAgain = true;
    else this.#claim();
  }

  /** There is room for more. */
  wakeForMore(): void {
    if (!this.#claiming && this.#wanted() > 0) this.wake();
  }

  /** A job runs under the slot. */
  give(job: ClaimedJob): void {
    if (this.slot.hears(job.id)) this.#take(job);
  }

  /** The same, of another process. If it cannot be read now, the next look finds it. */
  hear(given: GivenJob): void {
    if (given.id !== undefined) return this.give(given as ClaimedJob);
    this.slot.read(given).then(
      (jobs) => jobs.forEach((job) => this.give(job)),
      () => {},
    );
  }

  #claim(): void {
    const { tasks, results } = this.#o;
    const pauses = this.#closed || results.failing || tasks.names().size === 0;
    const limit = pauses ? 0 : this.#wanted();
    if (limit <= 0 && (this.#closed || !this.slot.due(this.#room(false)))) {
      if (pauses) this.#pollLater(POLL_MS);
      else if (this.slot.open) this.#pollLater(FULL_MS);
      return; // whatever makes room wakes us
    }
    this.#claimAgain = false;
    this.#cancelPoll?.();
    this.#claiming = this.#claimAndStart(limit);
  }

  async #claimAndStart(limit: number): Promise<void> {
    const claimed = await this.#tried(async () => (limit > 0 ? this.#claimOnce(limit) : POLL_MS));
    const nextMs = claimed ?? STORE_RETRY_MS;
    this.#claiming = null;
    this.#o.onJobs();
    const room = this.#room(limit > 0 && claimed !== null);
    if (this.#claimAgain || (nextMs === 0 && this.#wanted() > 0)) this.wake();
    else if (!this.#claiming && this.slot.wants(room)) this.#claiming = this.#tendSlot(room, nextMs);
    else this.#pollLater(nextMs);
  }

  async #tendSlot(room: Room, nextMs: number): Promise<void> {
    const tended = await this.#tried(() => this.slot.tend(room));
    this.#claiming = null;
    if (this.#claimAgain) this.wake();
    else this.#pollLater(tended === null ? STORE_RETRY_MS : nextMs);
  }

  /** Null if it failed. */
  async #tried<Answer>(call: () => Promise<Answer>): Promise<Answer | null> {
    const { watch, log } = this.#o;
    try {
      return await call();
    } catch (error) {
      if (!watch.failed(error) && !hasCode(error, "STOPPED"))
        log.warn({ err: error }, "could not claim jobs; trying again");
      return null;
    }
  }

  async #claimOnce(limit: number): Promise<number> {
    const { lease: port, watch, buffer, results } = this.#o;
    const { id: lease, opens } = port;
    const sentAt = watch.sent();
    const { jobs, held, nextDueInMs } = await this.#sendClaim(limit, lease, opens);
    watch.answered(jobs);
    if (!held) {
      port.refused(lease);
      return opens ? STORE_RETRY_MS : 0;
    }
    const keep = jobs.length === 0 || (port.granted(lease, sentAt) && !this.#closed);
    if (keep) buffer.add(jobs);
    else for (const job of jobs) results.settle(job, { kind: "released" });
    if (jobs.length === limit) return 0;
    return nextDueInMs === null ? POLL_MS : Math.min(nextDueInMs, POLL_MS);
  }

  async #sendClaim(limit: number, lease: LeaseId, opens: boolean): Promise<Claimed> {
    const { claims, active, buffer, lease: port } = this.#o;
    try {
      return await claims.claim({
        ...this.#claimant(),
        lease,
        opens,
        limit,
        suspect: !this.#holdsSuspect(),
        hasSlot: this.slot.isUnder(lease),
        running: active(),
        pace: buffer.pace,
      });
    } catch (error) {
      port.retire(lease);
      throw error;
    }
  }

  #claimant(): SlotRequest {
    const { settings, identity, tasks, author, lease, channels } = this.#o;
    const { leaseMs, queues, exceptQueues } = settings;
    const common = { author: author(), worker: identity.name, leaseMs, opens: lease.opens };
    const channel = channels?.privateChannel ?? "";
    return { ...common, lease: lease.id, tasks: tasks.names(), queues, exceptQueues, channel };
  }

  #wanted(): number {
    return this.#o.buffer.wanted(this.#o.active());
  }

  #holdsSuspect(): boolean {
    const { running, buffer, budgets } = this.#o;
    const suspected = (job: ClaimedJob): boolean => isSuspect(job.crashes, budgets);
    return running.some(({ claimed }) => suspected(claimed)) || buffer.some(suspected);
  }

  /** `idle`: a claim has just found that nothing more waits. */
  #room(idle: boolean): Room {
    const { claims, channels, results, buffer, hasPlace } = this.#o;
    const room =
      claims.slots !== undefined &&
      channels?.privateChannel != null &&
      !this.#closed &&
      !results.failing &&
      !this.slot.blocked &&
      hasPlace();
    return { room, opens: room && idle && buffer.pace <= SLOT_PACE_MAX };
  }

  /** Until it is closed, jobs are put there. Tried again until a drain is over, or called off. */
  async #closeSlot(): Promise<void> {
    while (this.slot.open && this.#closed) {
      await this.#claiming;
      const done = await this.#tried(() => this.slot.tend(this.#room(false)).then(() => true));
      if (!done) await this.#o.clock.sleep(STORE_RETRY_MS);
    }
  }

  /** A job under the slot. What cannot start here goes to others. */
  #take(job: ClaimedJob): void {
    const { buffer, results, lease, hasPlace, onJobs } = this.#o;
    const waits = !hasPlace() && buffer.size >= buffer.pace;
    if (this.#closed || waits || !lease.holds(job.lease)) return results.settle(job, { kind: "released" });
    buffer.add([job]);
    onJobs();
    if (!this.#claiming && !hasPlace()) this.#pollLater(FULL_MS);
  }

  #pollLater(ms: number): void {
    this.#cancelPoll?.();
    if (this.#closed) return;
    this.#cancelPoll = this.#o.clock.after(ms, () => this.wake());
  }
}
