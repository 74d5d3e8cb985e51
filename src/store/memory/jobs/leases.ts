/** Leases in memory: which runs each lease holds, and when it expires. */

import type { LeaseId } from "../../../core/ids.ts";
import type { Clock } from "../../../platform/clock.ts";
import { type Dead, isLeftBehind } from "../../abandoned-leases.ts";
import type { Entry } from "./store-cache.ts";

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

  /**
   * Whether a claim may be made under the lease. One that is not there or has run out is opened for who holds nothing; with
   * jobs under it, giving it more would revive it by the back door.
   */
  hold(lease: LeaseId, ttlMs: number, opens: boolean): boolean {
    const until = this.#clock.monotonic() + ttlMs;
    const hold = this.#holds.get(lease);
    if (hold && !this.#lapsed(hold)) hold.expiresAt = Math.max(hold.expiresAt, until);
    else if (!opens || (hold && hold.runs.size > 0)) return false;
    else this.#holds.set(lease, { expiresAt: until, runs: new Set() });
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

  /** Ends leases and answers with the runs that were under them, in the order of their claims. */
  end(which: Dead): readonly Entry[] {
    const abandoned: Entry[] = [];
    for (const [lease, hold] of this.#holds) {
      if (which.by === "expiry" ? !this.#lapsed(hold) : !isLeftBehind(lease, which)) continue;
      this.#holds.delete(lease);
      abandoned.push(...hold.runs);
    }
    return abandoned;
  }

  /** Takes those runs out of their leases, which go on. */
  takeAway(unwanted: (entry: Entry) => boolean): readonly Entry[] {
    const taken: Entry[] = [];
    for (const { runs } of this.#holds.values()) {
      for (const entry of runs) if (unwanted(entry) && runs.delete(entry)) taken.push(entry);
    }
    return taken;
  }

  #lapsed(hold: Hold): boolean {
    return hold.expiresAt <= this.#clock.monotonic();
  }
}
