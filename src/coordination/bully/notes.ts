/** What people should know of how leadership works here. */

import { majorityOf } from "../../core/bully.ts";
import type { NodeName } from "../../core/ids.ts";
import type { Belonging } from "./belonging.ts";
import type { Joining } from "./joining.ts";
import type { PeerBook } from "./peer-book.ts";
import type { PeerCalls } from "./peer-calls.ts";
import type { Roster } from "./roster.ts";
import type { BullySettings } from "./settings.ts";
import type { Voter } from "./voter.ts";

export interface NotesOptions {
  readonly self: NodeName;
  readonly quorum: BullySettings["quorum"];
  readonly roster: Roster;
  readonly book: PeerBook;
  readonly voter: Voter;
  readonly belonging: Belonging;
  readonly joining: Joining | null;
  readonly calls: Pick<PeerCalls, "denials">;
}

export const SPLIT_BRAIN =
  "split brain possible: quorum is none, so each part of a split cluster has a leader of its own";

export function bullyNotes(options: NotesOptions): readonly string[] {
  const { self, quorum, roster, book, voter, belonging, joining, calls } = options;
  const voters = roster.names();
  const notes: string[] = [];
  if (quorum === "none") notes.push(SPLIT_BRAIN);
  const here = voters.filter((name) => name === self || book.alive(name)).length;
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
  if (belonging.removed)
    notes.push("this node was removed from the cluster; start it again to join anew, or stop it");
  for (const [peer, reason] of calls.denials)
    if (roster.has(peer)) notes.push(`${peer} does not take the calls of this node: ${reason}`);
  const differing = otherLists(options);
  if (differing.length > 0)
    notes.push(`the list of nodes differs from that of ${differing.join(", ")}; make it the same everywhere`);
  if (belonging.strangers.size > 0)
    notes.push(`not in the list of nodes, and ignored: ${[...belonging.strangers].sort().join(", ")}`);
  return notes;
}

/** Those who live, and whose list of nodes is another one than ours. */
export function otherLists({ roster, book }: Pick<NotesOptions, "roster" | "book">): readonly NodeName[] {
  return roster.names().filter((name) => book.alive(name) && book.entry(name)?.presence.hash !== roster.hash);
}
