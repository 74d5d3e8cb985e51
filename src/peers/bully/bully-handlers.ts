/** Answers the requests of peers about the election. From a node that is not a member, only a request to join is accepted. */

import { sameIncarnation } from "../../core/leadership/vote-rules.ts";
import { compareNames } from "../../core/leadership/bully.ts";
import { BatonError } from "../../core/errors.ts";
import type { NodeIdentity } from "../../core/node.ts";
import { compareSets } from "../../core/leadership/peer-set.ts";
import type { PeerHandlers } from "../rpc/peer-rpc.ts";
import type { LeaderWatch } from "./election/leader-watch.ts";
import type { Heartbeats } from "./heartbeats.ts";
import { removedError, type MemberChanges } from "./joining/member-changes.ts";
import type { BullyLock } from "./lock.ts";
import type { BullyMembership } from "./membership.ts";
import type { PeerState } from "./peer-state.ts";

export function bullyHandlers(
  state: PeerState,
  lock: BullyLock,
  heartbeats: Heartbeats,
  watch: LeaderWatch,
  changes: MemberChanges,
  membership: BullyMembership,
) {
  const { identity, peers, voter, settings } = state;

  const requireMember = (sender: string, from: NodeIdentity): void => {
    // Over the wire the sender has proved its name; in memory `sender` is an address, which no name can be.
    if (sender !== from.name && peers.has(sender))
      throw new BatonError("FORBIDDEN", `${sender} speaks in the name of ${from.name}`);
    if (from.name === identity.name && !sameIncarnation(from, identity))
      throw new BatonError(
        "NAME_IN_USE",
        `another living node is called ${from.name}; give one of them another name`,
        { field: "from.name" },
      );
    if (peers.has(from.name)) return;
    const why = peers.removal(from);
    if (why) throw removedError(from.name, why, peers.set);
    state.meetStranger(from.name, null);
    throw new BatonError("FORBIDDEN", `${from.name} is no member of this cluster; its messages are ignored`);
  };

  return {
    heartbeat(beat, sender) {
      const newer = state.newerThan(beat.set) ? peers.set : null;
      if (!peers.has(beat.from.name) && peers.agreed && !peers.removal(beat.from)) {
        // A node that seeks a cluster: it may read our presence, and does not count.
        state.meetStranger(beat.from.name, beat);
        // Or a node that believes to be a member of ours.
        const ours = beat.cluster !== null && beat.cluster === peers.set?.cluster;
        return { ...state.presence(), peers: ours ? newer : null };
      }
      requireMember(sender, beat.from);
      heartbeats.receive(beat);
      return { ...state.presence(), peers: newer };
    },

    async election({ from, candidate, set }, sender) {
      requireMember(sender, from);
      const holder = voter.holder();
      // The candidate may know better than this node that the leader has died: check it here too.
      if (holder && !sameIncarnation(holder, candidate)) await watch.check(holder);
      const willing = voter.willing(candidate, set);
      const above = compareNames(identity.name, candidate.name, settings.order) > 0;
      const stands = willing && above && voter.votes && lock.stands && state.status !== "draining";
      if (stands) lock.hint();
      const newer = state.newerThan(set) ? peers.set : null;
      return { votes: voter.votes, willing, stands, epoch: voter.epoch, peers: newer };
    },

    vote(asked, sender) {
      // A leader that removed itself releases its term when it is not a member any more.
      const last = asked.op === "release" && peers.removal(asked.from) !== null;
      if (!last) requireMember(sender, asked.from);
      return lock.vote(asked, asked.set);
    },

    coordinator(asked, sender) {
      requireMember(sender, asked.from);
      return lock.vote({ ...asked, op: "renew" }, asked.set);
    },

    join: ({ from, address }) => changes.join(from, address),

    async members({ from, term, ttlMs, peers: set }, sender) {
      const ours = voter.peers;
      // A set that came from others already. A leader that removed itself is not in it, and still waits for the answer.
      const known = ours?.cluster === set.cluster && compareSets(ours, set) === 0;
      if (ours === null) await state.adopt(set);
      else if (!known && !peers.has(from.name)) requireMember(sender, from);
      return { noted: await changes.noted(term, ttlMs, set), epoch: voter.epoch };
    },

    async remove({ from, peers: set }, sender) {
      requireMember(sender, from);
      await state.adopt(set);
      return {};
    },

    request({ from, request }, sender) {
      requireMember(sender, from);
      membership.receive(request);
      return {};
    },
  } satisfies Partial<PeerHandlers>;
}
