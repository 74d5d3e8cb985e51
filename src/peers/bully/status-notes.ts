/** The notes on leadership that `baton status` shows. */

import { majorityOf } from "../../core/leadership/bully.ts";
import type { ClusterJoiner } from "./joining/cluster-joiner.ts";
import type { PeerCalls } from "./peer-calls.ts";
import type { PeerState } from "./peer-state.ts";

export const SPLIT_BRAIN =
  "split brain possible: quorum is none, so each part of a split cluster has a leader of its own";

export function statusNotes(
  state: PeerState,
  calls: PeerCalls,
  joining: ClusterJoiner | null,
): readonly string[] {
  const { peers, voter } = state;
  const { quorum } = state.settings;
  const self = state.identity.name;
  const voters = peers.names();
  const notes: string[] = [];
  if (quorum === "none") notes.push(SPLIT_BRAIN);
  const here = voters.filter((name) => state.alive(name)).length;
  const needed = majorityOf(voters.length);
  if (quorum === "majority" && here < needed && voters.includes(self)) {
    const advice =
      voters.length === 2 ? "; with two nodes the loss of either leaves no majority, a third node would" : "";
    notes.push(`nobody can lead: ${here} of ${voters.length} voters are here, ${needed} are needed${advice}`);
  }
  if (voters.includes(self) && !voter.votes)
    notes.push(
      "this node does not vote yet: it has no record of its votes, and waits until it cannot vote twice",
    );
  if (joining?.trouble) notes.push(`this node has not joined yet: ${joining.trouble}`);
  if (state.removed)
    notes.push("this node was removed from the cluster; start it again to join anew, or stop it");
  for (const [peer, reason] of calls.denials)
    if (peers.has(peer)) notes.push(`${peer} does not take the calls of this node: ${reason}`);
  const differing = state.otherLists();
  if (differing.length > 0)
    notes.push(`the list of nodes differs from that of ${differing.join(", ")}; make it the same everywhere`);
  if (state.strangers.size > 0)
    notes.push(`not in the list of nodes, and ignored: ${[...state.strangers].sort().join(", ")}`);
  return notes;
}
