/** Terms: the epochs that leaders were granted. */

import type { NodeIdentity } from "../core/node.ts";
import type { LeaderRole, Term } from "../core/leadership/term.ts";

/** Remembers the highest epoch of every leader role for ever, whatever grants it. */
export interface TermStore {
  /** Grants the next epoch of the role to the candidate: highest ever + 1, in one step. */
  grant(role: LeaderRole, candidate: NodeIdentity): Promise<Term>;
  /** Takes over a term granted elsewhere (by Redis, by peers). False when a higher or another equal one is known. */
  admit(term: Term): Promise<boolean>;
  read(role: LeaderRole): Promise<Term | null>;
}
