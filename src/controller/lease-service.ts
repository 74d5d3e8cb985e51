/**
 * The queue of agents that wait for work.
 *
 *   ask ──> the line of its interest ──look──> claim ──jobs──> answer
 *                     ^                          |
 *                     '────── nothing ───────────'   until a hint, a due job, a slow tick, or the end of the wait
 *
 * There is one timer for all agents, and one claim for all that wait for the same work, so that many idle agents cost
 * no more than one. The claim is made for the agent that has waited longest; if it returns fewer jobs than requested,
 * no claims are made for the others.
 */

import { agentLease } from "../core/agent.ts";
import { hasCode } from "../core/errors.ts";
import { recordRuns } from "../jobs/run/run-writes.ts";
import type { Platform } from "../platform/platform.ts";
import type { JobStore } from "../store/store.ts";
import type { Heartbeat } from "./agent-directory.ts";
import { LeaseWaiters, type Caller, type Issued, type Waiter, type WorkRequest } from "./lease-waiters.ts";
import type { LeasedRuns } from "./leased-runs.ts";
import type { TermGuard } from "./term-guard.ts";

export interface LeaseRequest extends Omit<Heartbeat, "running"> {
  readonly capabilities: readonly string[];
  readonly queues?: readonly string[];
  readonly limit: number;
  readonly timeoutMs: number;
  readonly leaderEpoch?: number;
  readonly requestId?: string;
}

export interface LeaseServiceOptions {
  readonly store: { readonly jobs: Pick<JobStore, "claim" | "record"> };
  readonly guard: TermGuard;
  readonly leasedRuns: LeasedRuns;
  readonly leaseMs: number;
  readonly onLeased: (agent: string, issued: Issued) => void;
}

/** The net under hints and timers: so long may a job wait at worst if all of them fail. */
const POLL_MS = 1_000;
/** Looks at a time, of one interest and of all. More, and idle agents take the store's connections from those who work. */
const CLAIMS_EACH = 4;
const CLAIMS_MAX = 8;
/** With more interests than this, each is looked after less often: agents of equal capabilities cost less. */
const INTERESTS_PER_LOOK = 16;

/** A wait ends sooner by up to so much when another ends anyway: twenty agents that ask again together cost a third of one by one. */
const EARLY_SHARE = 1 / 20;
const EARLY_MS_MAX = 2_500;

type LeasePlatform = Pick<Platform, "clock" | "random" | "log" | "events">;

const NOTHING: ReadonlySet<string> = new Set();

export class LeaseService {
  readonly #platform: LeasePlatform;
  readonly #o: LeaseServiceOptions;
  readonly #interests = new Map<string, LeaseWaiters>();
  /** Those that are worth a look, in turn. */
  readonly #wanting = new Set<LeaseWaiters>();
  /** Those for whom a look is under way. */
  readonly #served = new Set<Waiter>();
  #claims = 0;
  /** When the next scheduled job is due, as last heard; monotonic. */
  #dueAt = Infinity;
  #wakesAt = Infinity;
  #cancelTimer: (() => void) | null = null;

  constructor(platform: LeasePlatform, options: LeaseServiceOptions) {
    this.#platform = platform;
    this.#o = options;
  }

  *agents(): Generator<string> {
    for (const { line } of this.#interests.values()) for (const { request } of line) yield request.agent;
  }

  /** A lease with at least one job, or null when there was none in time. */
  ask(request: WorkRequest, caller: Caller): Promise<Issued | null> {
    const { clock, random } = this.#platform;
    const now = clock.monotonic();
    const interest = this.#interest(request);
    const asked = Promise.withResolvers<Issued | null>();
    const waiter: Waiter = {
      request,
      lease: agentLease(request.agent, request.requestId, random.uuid()),
      until: now + request.timeoutMs,
      caller,
      forsaken: false,
      settle: asked.resolve,
      fail: asked.reject,
    };
    const stopListening = caller.onGone(() => {
      interest.end((each) => each === waiter);
      waiter.settle(null);
    });
    interest.line.push(waiter);
    // A request that does not wait is answered from a new claim; for the others the last one is recent enough.
    if (request.timeoutMs === 0 || interest.hinted || now - interest.emptyAt >= POLL_MS)
      this.#claimNext(interest);
    this.#wakeAt(Math.min(waiter.until, this.#ticksAt(interest)));
    return asked.promise.finally(stopListening);
  }

  /** There may be work: these jobs, or of any kind when nobody knows. */
  wake(jobs?: readonly { readonly task: string }[]): void {
    if (this.#interests.size === 0) return;
    const tasks = jobs && [...new Set(jobs.map(({ task }) => task))];
    const now = this.#platform.clock.monotonic();
    for (const interest of this.#interests.values()) {
      if (tasks && !tasks.some((task) => interest.tasks.has(task))) continue;
      interest.hint(tasks !== undefined);
      if (now >= interest.quietUntil) this.#claimNext(interest);
      else this.#wakeAt(interest.quietUntil);
    }
  }

  due(inMs: number): void {
    if (this.#interests.size === 0) return;
    this.#dueAt = Math.min(this.#dueAt, this.#platform.clock.monotonic() + inMs);
    this.#wakeAt(this.#dueAt);
  }

  /** Nobody listens for the answers to these requests any more; what a look under way still finds for them is given back. */
  forsake(agent: string, requests: readonly string[]): void {
    const theirs = ({ request }: Waiter): boolean =>
      request.agent === agent && request.requestId !== undefined && requests.includes(request.requestId);
    for (const waiter of this.#served) if (theirs(waiter)) waiter.forsaken = true;
    for (const interest of this.#interests.values()) interest.end(theirs);
  }

  close(): void {
    this.#cancelTimer?.();
    this.#wakesAt = this.#dueAt = Infinity;
    this.#wanting.clear();
    const interests = [...this.#interests.values()];
    this.#interests.clear();
    for (const { line } of interests) for (const waiter of line) waiter.fail(this.#o.guard.refusal());
  }

  #interest(request: WorkRequest): LeaseWaiters {
    const key = LeaseWaiters.keyOf(request);
    let interest = this.#interests.get(key);
    if (!interest) this.#interests.set(key, (interest = new LeaseWaiters(key, request)));
    return interest;
  }

  #claimNext(interest: LeaseWaiters): void {
    this.#wanting.add(interest);
    this.#pump();
  }

  #pump(): void {
    for (const interest of this.#wanting) {
      while (this.#claims < CLAIMS_MAX && interest.claims < (interest.flows ? CLAIMS_EACH : 1)) {
        const waiter = interest.line.shift();
        if (!waiter) break;
        void this.#serve(interest, waiter);
      }
      if (interest.line.length === 0) this.#wanting.delete(interest);
      if (this.#claims >= CLAIMS_MAX) return;
    }
  }

  async #serve(interest: LeaseWaiters, waiter: Waiter): Promise<void> {
    this.#claims++;
    interest.claims++;
    interest.hinted = false;
    this.#served.add(waiter);
    try {
      await this.#claim(interest, waiter);
    } catch (error) {
      // The store may not answer: the others hear of it when their turn comes.
      interest.foundNothing(this.#platform.clock.monotonic());
      this.#wanting.delete(interest);
      waiter.fail(error);
      if (hasCode(error, "NOT_LEADER")) this.close();
    }
    this.#served.delete(waiter);
    this.#claims--;
    interest.claims--;
    this.#sweep();
  }

  async #claim(interest: LeaseWaiters, waiter: Waiter): Promise<void> {
    const { clock, events } = this.#platform;
    const { store, guard, leasedRuns, leaseMs, onLeased } = this.#o;
    const { request, lease, caller } = waiter;
    const term = guard.require("lead");
    const suspect = !leasedRuns.holdsSuspect(request.agent);
    const claiming = store.jobs.claim({
      author: { node: term.leader, ownerEpoch: term.epoch, leaderEpoch: term.epoch },
      worker: request.agent,
      lease,
      leaseMs,
      limit: request.limit,
      tasks: request.tasks,
      queues: request.queues,
      exceptQueues: NOTHING,
      opens: true,
      suspect,
      fence: term,
    });
    const { jobs, nextDueInMs } = await guard.fenced(events.fenced("jobs.claim", claiming));
    const now = clock.monotonic();
    if (nextDueInMs !== null) this.#dueAt = Math.min(this.#dueAt, now + Math.max(nextDueInMs, 1));
    if (jobs.length === 0) return this.#nothing(interest, waiter, suspect, now);
    interest.found(jobs.length === request.limit, now);
    if (!interest.flows) this.#wanting.delete(interest);
    const issued = { lease, term, jobs };
    if (caller.gone || waiter.forsaken) {
      waiter.settle(null);
      return this.#giveBack(issued);
    }
    leasedRuns.add(request.agent, jobs);
    onLeased(request.agent, issued);
    waiter.settle(issued);
  }

  #nothing(interest: LeaseWaiters, waiter: Waiter, conclusive: boolean, now: number): void {
    if (waiter.caller.gone || waiter.forsaken || now >= waiter.until) waiter.settle(null);
    else if (this.#interests.get(interest.key) !== interest) waiter.fail(this.#o.guard.refusal());
    // Who may have no suspect is not the one to look for the others, who may.
    else if (conclusive) interest.line.unshift(waiter);
    else interest.line.push(waiter);
    interest.foundNothing(now);
    this.#wanting.delete(interest);
  }

  /** Nobody waits for them any more: as if they had not been claimed. */
  async #giveBack({ jobs, term }: Issued): Promise<void> {
    const settlements = jobs.map((run) => ({ run, outcome: { kind: "released" } as const }));
    const { events, log } = this.#platform;
    const writing = { store: this.#o.store, events };
    await recordRuns(writing, { reports: [], settlements }, term).catch((error: unknown) => {
      log.warn({ err: error, jobs: jobs.length }, "could not give back jobs of an agent that left");
    });
    this.wake();
  }

  /** Ends waits that are over, looks where it is time to, and sets the timer for the next of it. */
  #sweep(): void {
    const now = this.#platform.clock.monotonic();
    const isDue = this.#dueAt <= now;
    if (isDue) this.#dueAt = Infinity;
    const over = [...this.#interests.values()].some(({ line }) => line.some(({ until }) => until <= now));
    let next = this.#dueAt;
    for (const interest of this.#interests.values()) {
      if (isDue) interest.hinted = true;
      const ticksAt = this.#ticksAt(interest);
      if (!this.#wanting.has(interest)) {
        if (over) interest.end((waiter) => endsAt(waiter) <= now);
        if (interest.line.length === 0) {
          if (interest.claims === 0 && now >= ticksAt) this.#interests.delete(interest.key);
          continue;
        }
        if (now >= ticksAt || (interest.hinted && now >= interest.quietUntil)) this.#wanting.add(interest);
      }
      next = Math.min(next, ticksAt > now ? ticksAt : Infinity);
      if (interest.hinted && interest.quietUntil > now) next = Math.min(next, interest.quietUntil);
      for (const { until } of interest.line) if (until > now) next = Math.min(next, until);
    }
    this.#pump();
    this.#wakeAt(next);
  }

  #ticksAt(interest: LeaseWaiters): number {
    return interest.emptyAt + POLL_MS * Math.ceil(this.#interests.size / INTERESTS_PER_LOOK);
  }

  #wakeAt(at: number): void {
    const { clock } = this.#platform;
    if (at === Infinity || at >= this.#wakesAt) return;
    this.#cancelTimer?.();
    this.#wakesAt = at;
    this.#cancelTimer = clock.after(Math.max(at - clock.monotonic(), 1), () => {
      this.#wakesAt = Infinity;
      this.#sweep();
    });
  }
}

/** When its wait may end, if another one ends anyway. */
function endsAt({ until, request }: Waiter): number {
  return until - Math.min(request.timeoutMs * EARLY_SHARE, EARLY_MS_MAX);
}
