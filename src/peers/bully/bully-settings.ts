/** The durations of a cluster of peers, and the relations between them. */

import type { NameOrder, Quorum } from "../../core/leadership/bully.ts";
import { BatonError } from "../../core/errors.ts";

export interface BullySettings {
  readonly quorum: Quorum;
  /** Which node tries first when there is no leader: the highest name, in this order. */
  readonly order: NameOrder;
  /** How often each node sends a heartbeat to each other node. */
  readonly heartbeatMs: number;
  /** How long an answer to a heartbeat, or to a renewal, is waited for. Shorter than a slow round trip, and no node can lead. */
  readonly heartbeatTimeoutMs: number;
  /** A node that was silent for so long is shown as dead. */
  readonly deadAfterMs: number;
  /**
   * How long a candidate waits for answers, in each of the two rounds of an election. Both fit into the time that the elector
   * grants to one attempt, or a slow network has no leader.
   */
  readonly electionTimeoutMs: number;
  /** A member of a joined cluster that was silent for so long is removed from it. */
  readonly forgetAfterMs: number;
  /** The first pause after a join that failed; it doubles, up to the longest. */
  readonly joinRetryMs: number;
  readonly joinRetryMsMax: number;
  /** The lease of leaders: how long a voter that has forgotten its promises keeps still. */
  readonly leaseMs: number;
}

export const DEFAULT_SETTINGS: BullySettings = {
  quorum: "majority",
  order: "text",
  heartbeatMs: 1_000,
  heartbeatTimeoutMs: 1_200,
  deadAfterMs: 5_000,
  electionTimeoutMs: 500,
  forgetAfterMs: 3_600_000,
  joinRetryMs: 250,
  joinRetryMsMax: 10_000,
  leaseMs: 5_000,
};

export function checkBullySettings(settings: BullySettings): void {
  for (const [field, value] of Object.entries(settings)) {
    if (typeof value !== "number" || (Number.isFinite(value) && value > 0)) continue;
    throw new BatonError("BAD_CONFIG", `${field} must be a number of ms above 0, not ${value}`, { field });
  }
  const { heartbeatMs, deadAfterMs, joinRetryMs, joinRetryMsMax } = settings;
  if (deadAfterMs <= heartbeatMs) {
    throw new BatonError(
      "BAD_CONFIG",
      `deadAfterMs (${deadAfterMs}) must be above heartbeatMs (${heartbeatMs}): otherwise every node looks dead between two heartbeats; raise it`,
      { field: "deadAfterMs" },
    );
  }
  if (joinRetryMsMax < joinRetryMs) {
    throw new BatonError(
      "BAD_CONFIG",
      `joinRetryMsMax (${joinRetryMsMax}) must not be below joinRetryMs (${joinRetryMs})`,
      { field: "joinRetryMsMax" },
    );
  }
}
