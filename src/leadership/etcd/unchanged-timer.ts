/**
 * Measures how long a value has been unchanged, on this node's monotonic clock.
 *
 * Etcd does not report its time, and its leases count whole seconds. So for a standby, a lease ends when the standby
 * has seen the same revision for the whole lease, counted from when it was first seen, which is never before it was
 * written. The alternative, comparing times that the writer noted, was rejected: two machines whose clocks differ by
 * more than a lease would take leadership from each other for ever.
 */

import type { Clock } from "../../platform/clock.ts";

interface Seen {
  readonly revision: number;
  readonly since: number;
}

export class UnchangedTimer {
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #seen = new Map<string, Seen>();

  constructor(clock: Pick<Clock, "monotonic">) {
    this.#clock = clock;
  }

  /** How long this has been its revision, as far as we saw; what is seen for the first time may be old already. */
  ageMs(what: string, revision: number, firstAgeMs = 0): number {
    const now = this.#clock.monotonic();
    const seen = this.#seen.get(what);
    if (seen?.revision === revision) return now - seen.since;
    const ageMs = seen ? 0 : firstAgeMs;
    this.#seen.set(what, { revision, since: now - ageMs });
    return ageMs;
  }

  /** What a watch tells may come late: only something newer than what was read counts. */
  hear(what: string, revision: number): void {
    const seen = this.#seen.get(what);
    if (seen && seen.revision < revision) this.#seen.set(what, { revision, since: this.#clock.monotonic() });
  }

  /** Forgets all others. */
  keep(these: ReadonlySet<string>): void {
    for (const what of this.#seen.keys()) if (!these.has(what)) this.#seen.delete(what);
  }
}
