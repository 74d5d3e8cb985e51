/**
 * Leases jobs for the free slots, one long poll at a time. A batch is offered to the main thread. If a handler blocks
 * its event loop, the offer is not accepted in time; the jobs are then given back at once, and other workers run them.
 */

import { reasonOf } from "../core/errors.ts";
import { CallError } from "../client/client-error.ts";
import type { LeaseBody, LeasedTaskBody, LeaseRequest } from "../client/controller-calls.ts";
import type { JobId, LeaseId } from "../core/ids.ts";
import { traceOf } from "../core/trace.ts";
import { Loop } from "../platform/loop.ts";
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

export type LeasePoller = ReturnType<typeof leasePoller>;

export function leasePoller({ platform, leader }: LinkContext, options: LeasePollerOptions) {
  const { clock, random, log } = platform;
  const { sign, blocked, onLeased, giveBack } = options;
  const backoff = leader.backoff();
  /** What the main thread has asked for; 0 while it has not. */
  let limit = 0;
  let stopped = false;
  let warnedAt = -Infinity;
  /** What was leased with these requests, if anything, is not known here; named until a leader has answered. */
  let unanswered: readonly string[] = [];

  const offer = (jobs: readonly ClaimedJob[]): SharedArrayBuffer => {
    const claim = newClaim();
    limit = 0;
    options.offer(jobs, claim);
    return claim;
  };

  const warn = (fields: Readonly<Record<string, unknown>>, what: string): void => {
    const now = clock.monotonic();
    if (now - warnedAt < WARN_EVERY_MS) return;
    warnedAt = now;
    log.warn(fields, `${what}; trying again`);
  };

  const reached = (url: string): void => {
    if (backoff.failures > 0) log.info({ url }, "there is a leader again");
    backoff.reset();
    warnedAt = -Infinity;
  };

  /** Under a name of its own for each node that is asked. */
  const requestText = (asked: string[], maybeDone: boolean): string => {
    // Those before in this round were refused, and nothing came of them.
    if (!maybeDone) asked.length = 0;
    const lost = [...unanswered, ...asked].slice(-UNANSWERED_MAX);
    const request_id = random.uuid();
    asked.push(request_id);
    const request: LeaseRequest = {
      ...sign,
      max_tasks: Math.min(limit, BATCH_MAX),
      timeout_ms: POLL_MS,
      request_id,
      ...(lost.length > 0 && { unanswered: lost }),
    };
    return JSON.stringify(request);
  };

  const leased = (lease: LeaseBody): void => {
    if (lease.tasks.length === 0) return;
    const jobs = lease.tasks.map((task) => claimedJob(task, lease));
    onLeased(lease);
    if (stopped) return giveBack(jobs);
    const claim = offer(jobs);
    clock.after(OFFER_MS, () => {
      if (!decide(claim)) return;
      const fields = { jobs: jobs.length };
      log.warn(fields, "a handler blocks the event loop: jobs that were leased meanwhile are given back");
      giveBack(jobs);
    });
  };

  const loop = new Loop(clock, async (signal) => {
    if (limit === 0 || blocked()) return Infinity;
    const sentAt = clock.monotonic();
    const asked: string[] = [];
    const body = (maybeDone: boolean): string => requestText(asked, maybeDone);
    try {
      const call = { timeoutMs: POLL_MS + POLL_SLACK_MS, signal, moves: true };
      const { status, url, json } = await leader.postToLeader("/v1/leases", body, call);
      if (status === 200 || status === 204) {
        unanswered = [];
        reached(url);
        if (status === 200) leased(json as LeaseBody);
        return status === 200 ? 0 : Math.max(sentAt + EMPTY_MS_MIN - clock.monotonic(), 0);
      }
      warn({ status, ...(json as object) }, `${url} gives no leases`);
    } catch (error) {
      if (signal.aborted || !(error instanceof CallError) || error.maybeDone)
        unanswered = [...unanswered, ...asked].slice(-UNANSWERED_MAX);
      if (signal.aborted) return 0;
      warn({}, reasonOf(error));
    }
    return backoff.next();
  });

  return {
    get unanswered(): readonly string[] {
      return unanswered;
    },

    start: () => loop.start(),

    /** There is room, or results get through again. */
    wake: () => loop.wake(),

    async stop(): Promise<void> {
      stopped = true;
      await loop.stop();
      if (limit > 0) offer([]);
    },

    /** Answered by one offer. */
    claim(free: number): void {
      limit = free;
      if (stopped) offer([]);
      else loop.wake();
    },
  };
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
