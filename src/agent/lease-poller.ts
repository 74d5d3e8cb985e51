/**
 * Leases jobs for the free slots, one long poll at a time. A batch is offered to the main thread. If a handler blocks
 * its event loop, the offer is not accepted in time; the jobs are then given back at once, and other workers run them.
 */

import type { LeaseBody, LeasedTaskBody, LeaseRequest } from "../client/controller-calls.ts";
import { BatonClientError } from "../client/client-error.ts";
import type { LeaderAnswer, LeaderConnection } from "../client/connection/leader-connection.ts";
import type { JobId, LeaseId } from "../core/ids.ts";
import { traceOf } from "../core/trace.ts";
import type { Clock } from "../platform/clock.ts";
import type { Log } from "../platform/log.ts";
import type { Random } from "../platform/random.ts";
import type { ClaimedJob } from "../store/store.ts";
import { BackOff } from "./back-off.ts";
import { decide, newClaim, type FromLink } from "./controller-link-messages.ts";

export interface LeasePollerOptions {
  readonly agent: string;
  readonly capabilities: readonly string[];
  /** Null for all. */
  readonly queues: readonly string[] | null;
  readonly version: string;
  readonly leader: LeaderConnection;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** Whether results pile up: to run more jobs would only add to them. */
  readonly blocked: () => boolean;
  readonly onLeased: (lease: LeaseBody) => void;
  readonly offer: (offer: Extract<FromLink, { say: "offer" }>) => void;
  readonly giveBack: (jobs: readonly ClaimedJob[]) => void;
}

/** The most that the API gives in one lease. */
const BATCH_MAX = 64;
/** Shorter, and idle agents cost the leader more requests; longer, and what stands between us and it ends the wait, often after 60 s. */
const POLL_MS = 50_000;
/** What an answer may take beyond the wait. Shorter, and jobs that were leased late are leased for nobody. */
const POLL_SLACK_MS = 5_000;
/** An empty answer that comes sooner than this is no wait at all: asking again at once would be a flood. */
const EMPTY_MS_MIN = 250;
/** Longer, and a job waits in vain for a blocked event loop; shorter, and a long garbage collection gives jobs back. */
const OFFER_MS = 2_000;
/** Requests that are remembered as unanswered. Fewer, and an agent of many nodes forgets one of a long search for the leader. */
const UNANSWERED_MAX = 32;
/** How often it is told that there still is no leader. */
const WARN_EVERY_MS = 30_000;

export class LeasePoller {
  readonly #o: LeasePollerOptions;
  readonly #backOff: BackOff;
  readonly #stopped = new AbortController();
  #free = 0;
  #offers = 0;
  #seen = 0;
  #wakeUp: () => void = () => {};
  #cancelOffer: () => void = () => {};
  #loop: Promise<void> = Promise.resolve();
  #warnedAt = -Infinity;
  /** What was leased with these requests, if anything, nobody here knows of; named until a leader has answered. */
  #unanswered: readonly string[] = [];

  constructor(options: LeasePollerOptions) {
    this.#o = options;
    this.#backOff = new BackOff(options);
  }

  start(): void {
    this.#loop = this.#run();
  }

  /** Requests whose answers were lost on the way. */
  get unanswered(): readonly string[] {
    return this.#unanswered;
  }

  /** Ends the poll that is under way. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    this.wake();
    await this.#loop;
  }

  /** As the main thread says, after it has seen so many offers. */
  room(free: number, seen: number): void {
    this.#free = free;
    this.#seen = seen;
    if (seen >= this.#offers) this.#cancelOffer();
    this.wake();
  }

  /** There may be room, or results may get through again. */
  wake(): void {
    this.#wakeUp();
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopped;
    while (!signal.aborted) {
      if (this.#mayPoll()) await this.#poll();
      else await new Promise<void>((resolve) => (this.#wakeUp = resolve));
    }
    this.#cancelOffer();
  }

  #mayPoll(): boolean {
    return this.#free > 0 && this.#seen >= this.#offers && !this.#o.blocked();
  }

  async #poll(): Promise<void> {
    const { clock, leader } = this.#o;
    const { signal } = this.#stopped;
    const sentAt = clock.monotonic();
    const asked: string[] = [];
    try {
      const answer = await leader.call({
        method: "POST",
        path: "/v1/leases",
        body: (maybeDone) => this.#request(asked, maybeDone),
        timeoutMs: POLL_MS + POLL_SLACK_MS,
        signal,
        moves: true,
      });
      if (answer.status === 200 || answer.status === 204) this.#unanswered = [];
      if (answer.status === 200) return this.#leased(answer);
      if (answer.status === 204) {
        this.#reached(answer.url);
        return await clock.sleep(Math.max(sentAt + EMPTY_MS_MIN - clock.monotonic(), 0), signal);
      }
      this.#warn({ status: answer.status, ...(answer.body as object) }, `${answer.url} gives no leases`);
    } catch (error) {
      if (signal.aborted || !(error instanceof BatonClientError) || error.maybeDone)
        this.#unanswered = [...this.#unanswered, ...asked].slice(-UNANSWERED_MAX);
      if (signal.aborted) return;
      this.#warn({}, error instanceof Error ? error.message : String(error));
    }
    await this.#backOff.failed(signal);
  }

  /** Under a name of its own for each node that is asked. */
  #request(asked: string[], maybeDone: boolean): string {
    const { agent, capabilities, queues, version, random } = this.#o;
    // Those before in this round were refused, and nothing came of them.
    if (!maybeDone) asked.length = 0;
    const unanswered = [...this.#unanswered, ...asked];
    const request_id = random.uuid();
    asked.push(request_id);
    const request: LeaseRequest = {
      agent,
      capabilities: [...capabilities],
      ...(queues && { queues: [...queues] }),
      max_tasks: Math.min(this.#free, BATCH_MAX),
      timeout_ms: POLL_MS,
      version,
      request_id,
      ...(unanswered.length > 0 && { unanswered: unanswered.slice(-UNANSWERED_MAX) }),
    };
    return JSON.stringify(request);
  }

  #leased({ body, url }: LeaderAnswer): void {
    const lease = body as LeaseBody;
    this.#reached(url);
    if (lease.tasks.length === 0) return;
    const { clock, log, onLeased, offer, giveBack } = this.#o;
    const jobs = lease.tasks.map((task) => claimedJob(task, lease));
    onLeased(lease);
    if (this.#stopped.signal.aborted) return giveBack(jobs);
    const claim = newClaim();
    this.#offers++;
    offer({ say: "offer", jobs, claim });
    this.#cancelOffer = clock.after(OFFER_MS, () => {
      if (!decide(claim, "withdrawn")) return;
      log.warn(
        { jobs: jobs.length },
        "a handler blocks the event loop: jobs that were leased meanwhile are given back",
      );
      giveBack(jobs);
    });
  }

  #reached(url: string): void {
    if (this.#backOff.failures > 0) this.#o.log.info({ url }, "there is a leader again");
    this.#backOff.succeeded();
    this.#warnedAt = -Infinity;
  }

  #warn(fields: Readonly<Record<string, unknown>>, what: string): void {
    const now = this.#o.clock.monotonic();
    if (now - this.#warnedAt < WARN_EVERY_MS) return;
    this.#warnedAt = now;
    this.#o.log.warn(fields, `${what}; trying again`);
  }
}

/** Interruptions and crashes are the leader's business: they are not told, and count as none here. */
function claimedJob(task: LeasedTaskBody, lease: LeaseBody): ClaimedJob {
  const createdAt = Date.parse(task.created_at);
  return {
    id: task.job_id as JobId,
    jobEpoch: task.job_epoch,
    lease: lease.lease_id as LeaseId,
    task: task.task,
    queue: task.queue,
    priority: task.priority,
    payload: JSON.stringify(task.payload ?? null),
    attempts: task.attempt,
    failures: task.failures,
    interruptions: 0,
    crashes: 0,
    maxAttempts: task.max_attempts,
    timeoutMs: task.timeout_ms,
    createdAt,
    runAt: createdAt,
    leaderEpoch: lease.leader_epoch,
    trace: traceOf(task.traceparent, task.tracestate),
  };
}
