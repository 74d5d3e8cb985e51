/** Decides whether this node may write: before every write of the controller API, and after one that the store refused. */

import type { Leadership, Membership } from "../leadership/coordination.ts";
import { BatonError, hasCode } from "../core/errors.ts";
import { permits, roleOf, type Role, type Write } from "../core/leadership/role.ts";
import type { Term } from "../core/leadership/term.ts";
import type { Platform } from "../platform/platform.ts";

/** Its body is a contract with agents in any language: these fields and no others, so without a message. */
export type UnderEpoch<Body> = Body & { readonly leaderEpoch: number };

export class NotLeader extends BatonError {
  constructor(details: {
    readonly leader_id: string | null;
    readonly leader_url: string | null;
    readonly leader_epoch: number | null;
    readonly node_id: string;
    readonly role: Role;
  }) {
    const advice = details.leader_id === null ? "no leader is known" : `${details.leader_id} leads`;
    super("NOT_LEADER", `${details.node_id} does not lead: ${advice}`, details);
  }
}

export function clusterForming(why: string): BatonError {
  const message = `the cluster is still forming (${why}) and takes no changes yet; try again in a moment`;
  return new BatonError("CLUSTER_FORMING", message);
}

export type TermGuard = ReturnType<typeof termGuard>;

export function termGuard(
  { identity, state }: Pick<Platform, "identity" | "state">,
  leadership: Pick<Leadership, "current" | "held">,
  membership: Pick<Membership, "nodes">,
) {
  const refusal = (): NotLeader => {
    const term = leadership.current();
    // We have just found that it is not us, whatever was last seen: an agent that we send to ourselves would never leave.
    const leader = term?.incarnation === identity.incarnation ? null : (term?.leader ?? null);
    const url = leader && membership.nodes().find((node) => node.name === leader)?.url;
    return new NotLeader({
      leader_id: leader,
      leader_url: url ?? null,
      leader_epoch: term?.epoch ?? null,
      node_id: identity.name,
      role: state.draining ? "DRAINING" : "STANDBY",
    });
  };
  return {
    refusal,

    get role(): Role {
      return roleOf(leadership.held(), state.draining);
    },

    /** The epoch of whoever leads, as last seen. */
    get epoch(): number | null {
      return leadership.current()?.epoch ?? null;
    },

    /** Our own term, or the refusal. */
    require(write: Write): Term {
      const term = leadership.held();
      const { draining, forming } = state;
      if (!permits(term, draining, write)) throw refusal();
      if (forming === null) return term;
      throw clusterForming(forming);
    },

    /** A write under a term that the store no longer knows as the newest is one of a node that does not lead. */
    async fenced<Result>(writing: Promise<Result>): Promise<Result> {
      try {
        return await writing;
      } catch (error) {
        throw hasCode(error, "STALE_EPOCH") ? refusal() : error;
      }
    },
  };
}
