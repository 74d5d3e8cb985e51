import { BatonError } from "../../core/errors.ts";
import type { NodeIdentity } from "../../core/node.ts";
import type { LeaderRole, Term } from "../../core/leadership/term.ts";
import { sameTerm } from "../../core/leadership/term.ts";
import type { TermStore } from "../store.ts";
import type { Turn } from "./turn.ts";

export class MemoryTerms implements TermStore {
  readonly #turn: Turn;
  readonly #newest = new Map<LeaderRole, Term>();

  constructor(options: { readonly turn: Turn }) {
    this.#turn = options.turn;
  }

  grant(role: LeaderRole, candidate: NodeIdentity): Promise<Term> {
    return this.#turn(() => {
      const epoch = (this.#newest.get(role)?.epoch ?? 0) + 1;
      const term: Term = { role, leader: candidate.name, incarnation: candidate.incarnation, epoch };
      this.#newest.set(role, term);
      return term;
    });
  }

  admit(term: Term): Promise<boolean> {
    return this.#turn(() => this.admits(term));
  }

  /** In the caller's turn. */
  admits(term: Term): boolean {
    const newest = this.#newest.get(term.role);
    if (newest && newest.epoch >= term.epoch) return sameTerm(newest, term);
    this.#newest.set(term.role, { ...term });
    return true;
  }

  read(role: LeaderRole): Promise<Term | null> {
    return this.#turn(() => this.#newest.get(role) ?? null);
  }

  /** The fence of a leader's write: called in its turn, before anything is changed. */
  require(fence: Term): void {
    const newest = this.#newest.get(fence.role);
    if (newest && sameTerm(newest, fence)) return;
    throw new BatonError(
      "STALE_EPOCH",
      `term ${fence.epoch} of ${fence.leader} as ${fence.role} is not the newest (${newest?.epoch ?? "none"}); nothing was written`,
      { role: fence.role, epoch: fence.epoch, newest: newest?.epoch ?? null },
    );
  }
}
