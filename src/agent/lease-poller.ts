/**
 * Leases jobs for the free slots, one long poll at a time. A batch is offered to the main thread. If a handler blocks
 * its event loop, the offer is not accepted in time; the jobs are then given back at once, and other workers run them.
 */

import { reasonOf } from "../core/errors.ts";
import { BatonClientError } from "../client/client-error.ts";
import type { ClusterAnswer } from "../client/connection/cluster-connection.ts";
import type { LeaseBody, LeasedTaskBody, LeaseRequest } from "../client/controller-calls.ts";
import type { JobId, LeaseId } from "../core/ids.ts";
import { traceOf } from "../core/trace.ts";
import { Loop, type Backoff } from "../platform/loop.ts";
import type { ClaimedJob } from "../store/store.ts";
import { decide, type LinkContext, newClaim } from "./link-messages.ts";

type Sign = Pick<LeaseRequest, "agent" | "capabilities" | "queues" | "version">;

export interface LeasePollerOptions {
  readonly sign: Sign;
  /** Whether results pile up: to run more jobs would only add to them. */
  readonly blocked: () => boolean;
  readonly onLeased: (lease: LeaseBody) => void;
  readonly offer: (jobs: readonly ClaimedJob[], claim: SharedArrayBuffer) => void;
  readonly giveBack: (jobs: readonly ClaimedJob[]) => void;
}

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
const WARN_EVERY_MS = 30_000;

export class LeasePoller {
  readonly #link: LinkContext;
  readonly #o: LeasePollerOptions;
  readonly #backoff: Backoff;
  readonly #loop: Loop;
  /** What the main thread has asked for; 0 while it has not. */
  #limit = 0;
  #stopped = false;
  #warnedAt = -Infinity;
  /** What was leased with these requests, if anything, is not known here; named until a leader has answered. */
  #unanswered: readonly string[] = [];

  constructor(link: LinkContext, options: LeasePollerOptions) {
    this.#link = link;
    this.#o = options;
    this.#backoff = link.leader.backoff();
    this.#loop = new Loop(link.platform.clock, (signal) => this.#step(signal));
  }

  start(): void {
    this.#loop.start();
  }

  get unanswered(): readonly string[] {
    return this.#unanswered;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#loop.stop();
    if (this.#limit > 0) this.#offer([]);
  }

  /** Answered by one offer. */
  claim(limit: number): void {
    this.#limit = limit;
    if (this.#stopped) this.#offer([]);
    else this.wake();
  }

  /** There is room, or results get through again. */
  wake(): void {
    this.#loop.wake();
  }

  async #step(signal: AbortSignal): Promise<number> {
    if (this.#limit === 0 || this.#o.blocked()) return Infinity;
    const { clock } = this.#link.platform;
    const sentAt = clock.monotonic();
    const asked: string[] = [];
    const body = (maybeDone: boolean): string => this.#request(asked, maybeDone);
    try {
      const options = { timeoutMs: POLL_MS + POLL_SLACK_MS, signal, moves: true };
      const answer = await this.#link.leader.postToLeader("/v1/leases", body, options);
      const { status, url, json } = answer;
      if (status === 200 || status === 204) {
        this.#unanswered = [];
        this.#reached(url);
        if (status === 200) this.#leased(answer);
        return status === 200 ? 0 : Math.max(sentAt + EMPTY_MS_MIN - clock.monotonic(), 0);
      }
      this.#warn({ status, ...(json as object) }, `${url} gives no leases`);
    } catch (error) {
      if (signal.aborted || !(error instanceof BatonClientError) || error.maybeDone)
        this.#unanswered = [...this.#unanswered, ...asked].slice(-UNANSWERED_MAX);
      if (signal.aborted) return 0;
      this.#warn({}, reasonOf(error));
    }
    return this.#backoff.next();
  }

  /** Under a name of its own for each node that is asked. */
  #request(asked: string[], maybeDone: boolean): string {
    // Those before in this round were refused, and nothing came of them.
    if (!maybeDone) asked.length = 0;
    const unanswered = [...this.#unanswered, ...asked];
    const request_id = this.#link.platform.random.uuid();
    asked.push(request_id);
    const request: LeaseRequest = {
      ...this.#o.sign,
      max_tasks: Math.min(this.#limit, BATCH_MAX),
      timeout_ms: POLL_MS,
      request_id,
      ...(unanswered.length > 0 && { unanswered: unanswered.slice(-UNANSWERED_MAX) }),
    };
    return JSON.stringify(request);
  }

  #leased({ json }: ClusterAnswer): void {
    const lease = json as LeaseBody;
    if (lease.tasks.length === 0) return;
    const { clock, log } = this.#link.platform;
    const { onLeased, giveBack } = this.#o;
    const jobs = lease.tasks.map((task) => claimedJob(task, lease));
    onLeased(lease);
    if (this.#stopped) return giveBack(jobs);
    const claim = this.#offer(jobs);
    clock.after(OFFER_MS, () => {
      if (!decide(claim)) return;
      const fields = { jobs: jobs.length };
      log.warn(fields, "a handler blocks the event loop: jobs that were leased meanwhile are given back");
      giveBack(jobs);
    });
  }

  #offer(jobs: readonly ClaimedJob[]): SharedArrayBuffer {
    const claim = newClaim();
    this.#limit = 0;
    this.#o.offer(jobs, claim);
    return claim;
  }

  #reached(url: string): void {
    if (this.#backoff.failures > 0) this.#link.platform.log.info({ url }, "there is a leader again");
    this.#backoff.reset();
    this.#warnedAt = -Infinity;
  }

  #warn(fields: Readonly<Record<string, unknown>>, what: string): void {
    const { clock, log } = this.#link.platform;
    const now = clock.monotonic();
    if (now - this.#warnedAt < WARN_EVERY_MS) return;
    this.#warnedAt = now;
    log.warn(fields, `${what}; trying again`);
  }
}

/** Interruptions and crashes are counted by the leader, which does not send them: they are 0 here. */
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
