import type { Channels } from "../../channels/channels.ts";
import type { Leadership, Membership } from "../../leadership/coordination.ts";
import type { NodeIdentity, NodeStatus } from "../../core/node.ts";
import type { Dispatcher } from "../dispatch/dispatcher.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Log } from "../../platform/log.ts";
import type { NodeEvents } from "../../platform/node-events.ts";
import type { Random } from "../../platform/random.ts";
import type { OwnershipStore } from "../../store/ownership.ts";

export interface OwnerOptions {
  readonly ownership: OwnershipStore;
  readonly channels: Channels;
  readonly membership: Pick<Membership, "nodes">;
  readonly leadership: Pick<Leadership, "held">;
  /** Knows the dispatch queues that this node has used as a leader. */
  readonly dispatcher: Pick<Dispatcher, "channels">;
  /** The state of this node, as it changes. */
  readonly state: { readonly status: NodeStatus };
  readonly identity: NodeIdentity;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly events: NodeEvents;
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
