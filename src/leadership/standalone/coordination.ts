/**
 * Coordination for a cluster of one node: it is always the leader, but under a real epoch that grows at each start.
 *
 * A new candidate always supersedes the holder: only one process at a time can open the store, so the previous holder
 * has ended, and waiting for its lease would only delay a restart.
 */

import type { NodeStatus, OwnInfo } from "../../core/node.ts";
import { LEADER_ROLES, type LeaderRole } from "../../core/leadership/term.ts";
import type { Platform } from "../../platform/platform.ts";
import { Lifecycle } from "../../platform/service.ts";
import type { TermStore } from "../../store/store.ts";
import { PendingRequest, type Coordination, type LeaseLock, type Membership } from "../coordination.ts";
import { StandaloneLock } from "./lock.ts";

export interface StandaloneOptions extends Pick<Platform, "identity" | "clock"> {
  /** Read whenever the node is shown: its load changes, and its url is known only when it listens. */
  readonly info: () => OwnInfo;
  readonly terms: TermStore;
}

export class StandaloneCoordination extends Lifecycle implements Coordination {
  readonly kind = "standalone";
  readonly membership: Membership;
  readonly #locks: ReadonlyMap<LeaderRole, LeaseLock>;
  #status: NodeStatus = "joining";

  constructor({ identity, info, terms, clock }: StandaloneOptions) {
    super();
    this.#locks = new Map(
      LEADER_ROLES.map((role) => [role, new StandaloneLock({ role, terms, clock, owner: this })]),
    );
    const pending = new PendingRequest();
    this.membership = {
      nodes: () => [{ ...info(), ...identity, status: this.#status, lastSeenAt: clock.now(), alive: true }],
      setStatus: async (status) => void (this.#status = status),
      ask: async (node, request) => {
        if (node !== identity.name) return false;
        pending.put(request);
        return true;
      },
      requests: (signal) => pending.follow(signal),
      displaced: () => null,
      // There is no other node; work that an earlier incarnation left is recovered at the start.
      findDead: async () => [],
      markRecovered: async () => {},
    };
  }

  lock(role: LeaderRole): LeaseLock {
    return this.#locks.get(role)!;
  }

  notes(): readonly string[] {
    return [];
  }

  protected override onStart(): void {
    this.#status = "joining";
  }

  protected override onStop(): void {}
}
