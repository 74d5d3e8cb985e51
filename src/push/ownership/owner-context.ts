/** What the services of an owner share, and how they wait for a store that is unavailable. */

import type { Channels } from "../../channels/channels.ts";
import type { Leadership, Membership } from "../../leadership/coordination.ts";
import type { Dispatcher } from "../dispatch/dispatcher.ts";
import { BatonError, hasCode } from "../../core/errors.ts";
import { Backoff, retry } from "../../platform/loop.ts";
import type { Platform } from "../../platform/platform.ts";
import type { OwnershipStore } from "../../store/ownership.ts";
import type { CoordinatorHealthMonitor } from "./coordinator-health-monitor.ts";
import type { CoordinatorHeartbeatService } from "./coordinator-heartbeat-service.ts";
import type { JobHandoffPublisher } from "./job-handoff-publisher.ts";
import type { OwnedAssignments } from "./owned-assignments.ts";

export interface OwnerOptions {
  readonly ownership: OwnershipStore;
  readonly channels: Channels;
  readonly membership: Pick<Membership, "nodes">;
  readonly leadership: Pick<Leadership, "held">;
  /** Knows the dispatch queues that this node has used as a leader. */
  readonly dispatcher: Pick<Dispatcher, "channels">;
  readonly settings: OwnerSettings;
}

export interface OwnerSettings {
  readonly heartbeatMs: number;
  /** How long an offer waits for its acknowledgement, and how many offers there are. */
  readonly ackMs: number;
  readonly tries: number;
  readonly orphanWaitMs: number;
  readonly hardMs: number;
  readonly orphanCheckMs: number;
  readonly rebalance: boolean;
  readonly rebalanceMs: number;
  readonly rebalanceRatio: number;
}

export interface OwnerContext extends Platform, OwnerOptions {
  readonly owned: OwnedAssignments;
  readonly retry: StoreRetry;
}

export interface HandoffContext extends OwnerContext {
  readonly health: CoordinatorHealthMonitor;
  readonly heartbeats: CoordinatorHeartbeatService;
  readonly publisher: JobHandoffPublisher;
}

const FIRST_RETRY_MS = 50;
/** Longer, and workers wait for receipts long after the store is available again. */
const RETRY_MS_MAX = 1_000;

/** Repeats calls of the store while it is unavailable. An outage is logged once, however many calls it affects. */
export class StoreRetry {
  readonly #platform: Pick<Platform, "clock" | "log">;
  #failing = false;

  constructor(platform: Pick<Platform, "clock" | "log">) {
    this.#platform = platform;
  }

  /** Rejects with the last error when a retry is of no use, when `over` is aborted, or after `patienceMs`. */
  async call<Answer>(call: () => Promise<Answer>, over: AbortSignal, patienceMs = Infinity): Promise<Answer> {
    const { clock } = this.#platform;
    const giveUpAt = clock.monotonic() + patienceMs;
    const backoff = new Backoff(FIRST_RETRY_MS, RETRY_MS_MAX);
    const delayMs = (error: unknown): number | null => {
      const nextMs = backoff.next();
      if (!isTransient(error) || clock.monotonic() + nextMs > giveUpAt) return null;
      this.#log(error);
      return nextMs;
    };
    const answer = await retry(clock, call, delayMs, over);
    this.#log(null);
    return answer;
  }

  #log(error: unknown): void {
    const { log } = this.#platform;
    if (error !== null && !this.#failing)
      log.error({ err: error }, "the store does not take what owned jobs report; trying again");
    if (error === null && this.#failing) log.info({}, "the store takes what owned jobs report again");
    this.#failing = error !== null;
  }
}

/** Whether the same call may succeed later. A stopped store is not waited for. */
export function isTransient(error: unknown): boolean {
  return error instanceof BatonError && error.retryable && !hasCode(error, "STOPPED");
}
