/** Whoever leads, as this node has heard: in its own name, from the leader itself, or from others that hear it. */

import { sameLife, type HeldTerm } from "../../core/ballot.ts";
import type { NodeIdentity } from "../../core/node.ts";
import type { LeaderRole, Term } from "../../core/term.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Tenure } from "../coordination.ts";

export interface LeaderViewOptions {
  readonly role: LeaderRole;
  readonly clock: Clock;
  readonly gone: (life: NodeIdentity) => boolean;
  /** Nobody leads any more, as far as this node knows: worth trying. */
  readonly onVacant: () => void;
  readonly onChange: () => void;
}

export interface Sighting {
  readonly term: HeldTerm;
  readonly acquiredAt: number;
  /** Until when the lease is valid, monotonic. */
  readonly until: number;
}

export class LeaderView {
  readonly #o: LeaderViewOptions;
  #seen: Sighting | null = null;
  #ended = false;
  #callOff: () => void = () => {};

  constructor(options: LeaderViewOptions) {
    this.#o = options;
  }

  /** False when a later term is known, or this one is known to be over. */
  note(sighting: Sighting): boolean {
    const before = this.#seen;
    const known = before !== null && before.term.epoch === sighting.term.epoch;
    if (before && before.term.epoch > sighting.term.epoch) return false;
    if (known && (this.#ended || !sameLife(before.term, sighting.term))) return false;
    const until = known ? Math.max(before.until, sighting.until) : sighting.until;
    this.#seen = { ...sighting, until };
    this.#ended = false;
    if (!known) this.#o.onChange();
    this.#watchEnd();
    return true;
  }

  end(term: HeldTerm): void {
    if (!this.#seen || this.#seen.term.epoch !== term.epoch || !sameLife(this.#seen.term, term)) return;
    if (this.#ended) return;
    this.#ended = true;
    this.#callOff();
    this.#o.onChange();
  }

  /** The highest epoch that was a term. */
  get epoch(): number {
    return this.#seen?.term.epoch ?? 0;
  }

  sighting(): Sighting | null {
    const { clock, gone } = this.#o;
    const seen = this.#seen;
    if (!seen || this.#ended || clock.monotonic() >= seen.until || gone(seen.term)) return null;
    return seen;
  }

  current(): Term | null {
    const seen = this.sighting();
    return seen && this.#term(seen.term);
  }

  tenure(): Tenure | null {
    const seen = this.sighting();
    if (!seen) return null;
    const { clock } = this.#o;
    const leaseUntil = clock.now() + (seen.until - clock.monotonic());
    return { ...this.#term(seen.term), acquiredAt: seen.acquiredAt, leaseUntil };
  }

  clear(): void {
    this.#callOff();
    this.#seen = null;
    this.#ended = false;
  }

  #term({ name, incarnation, epoch }: HeldTerm): Term {
    return { role: this.#o.role, leader: name, incarnation, epoch };
  }

  /** A lease that is renewed moves its end, so the timer looks again when it fires. */
  #watchEnd(): void {
    this.#callOff();
    const seen = this.#seen!;
    this.#callOff = this.#o.clock.after(Math.max(seen.until - this.#o.clock.monotonic(), 0), () => {
      if (this.#seen === seen) this.#o.onVacant();
    });
  }
}
