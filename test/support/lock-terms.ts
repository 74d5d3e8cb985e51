import type { NodeIdentity } from "../../src/core/node.ts";
import { sameTerm, type LeaderRole, type Term } from "../../src/core/leadership/term.ts";
import type { TermStore } from "../../src/store/store.ts";

/** The part of a store that elections need, in memory. */
export class MemoryTerms implements TermStore {
  readonly #newest = new Map<LeaderRole, Term>();

  async grant(role: LeaderRole, candidate: NodeIdentity): Promise<Term> {
    const epoch = (this.#newest.get(role)?.epoch ?? 0) + 1;
    const term: Term = { role, leader: candidate.name, incarnation: candidate.incarnation, epoch };
    this.#newest.set(role, term);
    return term;
  }

  async admit(term: Term): Promise<boolean> {
    const newest = this.#newest.get(term.role);
    if (newest && newest.epoch >= term.epoch && !sameTerm(newest, term)) return false;
    this.#newest.set(term.role, term);
    return true;
  }

  async read(role: LeaderRole): Promise<Term | null> {
    return this.#newest.get(role) ?? null;
  }
}
