/** What the services of an owner share: the platform, the stores and channels, and the state that is built first. */

import type { Channels } from "../../channels/channels.ts";
import type { Leadership, Membership } from "../../leadership/coordination.ts";
import type { Dispatcher } from "../dispatch/dispatcher.ts";
import type { Platform } from "../../platform/platform.ts";
import type { OwnershipStore } from "../../store/ownership.ts";
import type { CoordinatorHealthMonitor } from "./coordinator-health-monitor.ts";
import type { CoordinatorHeartbeatService } from "./coordinator-heartbeat-service.ts";
import type { JobHandoffPublisher } from "./job-handoff-publisher.ts";
import type { OwnedAssignments } from "./owned-assignments.ts";
import type { StoreRetry } from "./store-retry.ts";

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
  /** How long a drain waits until orphaned assignments have another owner. */
  readonly orphanWaitMs: number;
  /** The longest that a drain may take in all. */
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

/** For the services that give assignments to other owners. */
export interface HandoffContext extends OwnerContext {
  readonly health: CoordinatorHealthMonitor;
  readonly heartbeats: CoordinatorHeartbeatService;
  readonly publisher: JobHandoffPublisher;
}
