/**
 * The events by which the parts of a cluster of peers learn of changes in their shared state. Listeners run at once, in
 * the order of their subscription.
 */

import type { EventEmitter } from "node:events";
import type { NodeName } from "../../core/ids.ts";
import type { PeerSet, RemovedIncarnation } from "../../core/leadership/peer-set.ts";
import type { Presence } from "./messages.ts";

export interface PeerEventMap {
  /** Another set of peers is in force. */
  readonly peers: [before: PeerSet | null];
  /** An incarnation of a peer proved to be over. */
  readonly evidence: [];
  /** The known leader changed: a new term began, or the current one ended. */
  readonly leader: [];
  /** The lease of the known leader ran out. */
  readonly vacant: [];
  /** A peer votes that did not vote before. */
  readonly voter: [];
  /** This node has joined, or votes from now on. */
  readonly ready: [];
  /** This node is not a member any more. */
  readonly removed: [why: RemovedIncarnation["why"]];
  /** A call certainly did not reach this peer. */
  readonly unreachable: [peer: NodeName];
  /** A node of another cluster called this node. */
  readonly stranger: [presence: Presence];
}

export type PeerEvents = EventEmitter<PeerEventMap>;
