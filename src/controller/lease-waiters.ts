/**
 * Agents that wait for the same work: with the same capabilities and queues. If a claim for one of them finds nothing,
 * so would a claim for any other.
 */

import type { LeaseId } from "../core/ids.ts";
import type { Term } from "../core/leadership/term.ts";
import type { ClaimedJob } from "../store/store.ts";

/** Whoever waits for an answer that may take long, and may leave before it comes. */
export interface Caller {
  readonly gone: boolean;
  /** Calls back once, when they leave; the returned function calls it off. */
  onGone(leave: () => void): () => void;
}

export interface WorkRequest {
  readonly agent: string;
  /** What the agent calls this request, for the case that its answer is lost. */
  readonly requestId: string | undefined;
  readonly tasks: ReadonlySet<string>;
  /** Null for all. */
  readonly queues: ReadonlySet<string> | null;
  readonly limit: number;
  readonly timeoutMs: number;
}

export interface Issued {
  readonly lease: LeaseId;
  readonly term: Term;
  readonly jobs: readonly ClaimedJob[];
}

export interface Waiter {
  readonly request: WorkRequest;
  /** Kept for the whole wait: a look that finds nothing leaves no second lease behind in the store. */
  readonly lease: LeaseId;
  /** Monotonic. */
  readonly until: number;
  readonly caller: Caller;
  forsaken: boolean;
  readonly settle: (issued: Issued | null) => void;
  readonly fail: (error: unknown) => void;
}

/** Looks that find nothing are put off by twice as long each time, when somebody says that there is work of no known kind. */
const QUIET_MS_FIRST = 5;
/** Longer, and a job that was submitted elsewhere among a flood of others waits longer for its agent. */
const QUIET_MS_MAX = 250;

export class LeaseWaiters {
  readonly key: string;
  readonly tasks: ReadonlySet<string>;
  readonly queues: ReadonlySet<string> | null;
  /** Those who wait and are not being looked for now, oldest first. */
  line: Waiter[] = [];
  claims = 0;
  /** The last look found all that it asked for, so there may be more than one agent can take. */
  flows = false;
  /** When a look last came to the end of the work; monotonic. */
  emptyAt = -Infinity;
  /** Somebody said since then that there is work. */
  hinted = false;
  quietUntil = -Infinity;
  #fruitless = 0;

  constructor(key: string, request: WorkRequest) {
    this.key = key;
    this.tasks = request.tasks;
    this.queues = request.queues;
  }

  static keyOf({ tasks, queues }: WorkRequest): string {
    return JSON.stringify([[...tasks].sort(), queues && [...queues].sort()]);
  }

  /** Ends the wait of these, without a lease. */
  end(over: (waiter: Waiter) => boolean): void {
    const ended = this.line.filter(over);
    this.line = this.line.filter((waiter) => !over(waiter));
    for (const { settle } of ended) settle(null);
  }

  /** There is work, perhaps for us: with a task of ours it is worth looking at once. */
  hint(known: boolean): void {
    this.hinted = true;
    if (!known) return;
    this.#fruitless = 0;
    this.quietUntil = -Infinity;
  }

  found(all: boolean, now: number): void {
    this.#fruitless = 0;
    this.flows = all;
    if (!all) this.emptyAt = now;
  }

  foundNothing(now: number): void {
    this.flows = false;
    this.emptyAt = now;
    this.quietUntil = now + Math.min(QUIET_MS_FIRST * 2 ** this.#fruitless, QUIET_MS_MAX);
    this.#fruitless = Math.min(this.#fruitless + 1, 16);
  }
}
