/** The leader as this node knows it: from its own grant, from the leader, or from peers that receive its heartbeats. */

import { sameIncarnation, type HeldTerm } from "../../core/leadership/vote-rules.ts";
import type { LeaderRole, Term } from "../../core/leadership/term.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Tenure } from "../../leadership/coordination.ts";
import type { PeerEvents, Presences } from "./presences.ts";

/** The role that the peers elect together; the other roles are local to each node. */
export const ROLE: LeaderRole = "scheduler";

export interface Sighting {
  readonly term: HeldTerm;
  readonly acquiredAt: number;
  /** Until when the lease is valid, monotonic. */
  readonly until: number;
}

export class LeaderView {
  readonly #clock: Clock;
  readonly #presences: Presences;
  readonly #events: PeerEvents;
  #seen: Sighting | null = null;
  #ended = false;
  #callOff: () => void = () => {};

  constructor(clock: Clock, presences: Presences, events: PeerEvents) {
    this.#clock = clock;
    this.#presences = presences;
    this.#events = events;
  }

  /** False when a later term is known, or this one is known to be over. */
  note(sighting: Sighting): boolean {
    const before = this.#seen;
    const known = before !== null && before.term.epoch === sighting.term.epoch;
    if (before && before.term.epoch > sighting.term.epoch) return false;
    if (known && (this.#ended || !sameIncarnation(before.term, sighting.term))) return false;
    const until = known ? Math.max(before.until, sighting.until) : sighting.until;
    this.#seen = { ...sighting, until };
    this.#ended = false;
    if (!known) this.#events.emit("leader");
    this.#watchEnd();
    return true;
  }

  end(term: HeldTerm): void {
    if (!this.#seen || this.#ended || !sameHeld(this.#seen.term, term)) return;
    this.#ended = true;
    this.#callOff();
    this.#events.emit("leader");
  }

  /** The highest epoch that was a term. */
  get epoch(): number {
    return this.#seen?.term.epoch ?? 0;
  }

  sighting(): Sighting | null {
    const seen = this.#seen;
    if (!seen || this.#ended || this.#clock.monotonic() >= seen.until) return null;
    return this.#presences.gone(seen.term) ? null : seen;
  }

  current(): Term | null {
    const seen = this.sighting();
    return seen && termOf(seen.term);
  }

  tenure(): Tenure | null {
    const seen = this.sighting();
    if (!seen) return null;
    const leaseUntil = this.#clock.now() + (seen.until - this.#clock.monotonic());
    return { ...termOf(seen.term), acquiredAt: seen.acquiredAt, leaseUntil };
  }

  clear(): void {
    this.#callOff();
    this.#seen = null;
    this.#ended = false;
  }

  /** A renewal sets the timer anew; one that fires for an older sighting does nothing. */
  #watchEnd(): void {
    this.#callOff();
    const seen = this.#seen!;
    this.#callOff = this.#clock.after(Math.max(seen.until - this.#clock.monotonic(), 0), () => {
      if (this.#seen === seen) this.#events.emit("vacant");
    });
  }
}

export function termOf({ name, incarnation, epoch }: HeldTerm): Term {
  return { role: ROLE, leader: name, incarnation, epoch };
}

export function sameHeld(a: HeldTerm, b: HeldTerm): boolean {
  return a.epoch === b.epoch && sameIncarnation(a, b);
}
