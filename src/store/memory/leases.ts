/** Who holds which runs, and until when. */

import type { LeaseId } from "../../core/ids.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Abandoned } from "../store.ts";
import type { Entry } from "./ledger.ts";

interface Hold {
  /** Monotonic: nothing here outlives the process, and a wall clock that is set must not end a lease. */
  expiresAt: number;
  readonly runs: Set<Entry>;
}

export class Leases {
  readonly #clock: Clock;
  readonly #holds = new Map<LeaseId, Hold>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** False when the lease has run out with jobs under it: giving it more would revive it by the back door. */
  open(lease: LeaseId, ttlMs: number): boolean {
    const until = this.#clock.monotonic() + ttlMs;
    const hold = this.#holds.get(lease);
    if (!hold) this.#holds.set(lease, { expiresAt: until, runs: new Set() });
    else if (this.#lapsed(hold) && hold.runs.size > 0) return false;
    else hold.expiresAt = Math.max(hold.expiresAt, until);
    return true;
  }

  /** The runs under a lease that is held, or null. */
  renew(lease: LeaseId, ttlMs: number): ReadonlySet<Entry> | null {
    const hold = this.#holds.get(lease);
    if (!hold || this.#lapsed(hold)) return null;
    hold.expiresAt = this.#clock.monotonic() + ttlMs;
    return hold.runs;
  }

  take(lease: LeaseId, entry: Entry): void {
    this.#holds.get(lease)!.runs.add(entry);
  }

  give(lease: LeaseId, entry: Entry): void {
    this.#holds.get(lease)?.runs.delete(entry);
  }

  /** Ends the leases of the dead and answers with the runs that were under them, in the order of their claims. */
  end(which: Abandoned): readonly Entry[] {
    const abandoned: Entry[] = [];
    for (const [lease, hold] of this.#holds) {
      if (which.by === "expiry" ? !this.#lapsed(hold) : !leftBehind(lease, which)) continue;
      this.#holds.delete(lease);
      abandoned.push(...hold.runs);
    }
    return abandoned;
  }

  #lapsed(hold: Hold): boolean {
    return hold.expiresAt <= this.#clock.monotonic();
  }
}

/** A lease is `<node>/<incarnation>`, or that with more behind another slash; neither part has a slash in it. */
function leftBehind(lease: LeaseId, which: Exclude<Abandoned, { by: "expiry" }>): boolean {
  const [holder, incarnation] = lease.split("/");
  return incarnation !== which.except && (which.by === "everybody" || holder === which.node);
}
