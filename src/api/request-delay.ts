import type { Clock } from "../platform/clock.ts";

/** Longer, and a sender whose clock was set back is taken for late for longer; shorter, and a quiet hour forgets too much. */
const GENERATION_MS = 60_000;

interface Seen {
  since: number;
  /** The least of (arrival by our wall clock) - (departure by theirs). */
  now: number;
  before: number;
}

/**
 * How late a request is. Clocks of two machines differ, so the time between departure and arrival says nothing by itself; what it
 * exceeds the least of the last minutes by was spent waiting: in a buffer of the network, or of a process that stood still.
 */
export class RequestDelay {
  readonly #clock: Clock;
  readonly #senders = new Map<string, Seen>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  by(from: string, sentAt: number): number {
    const way = this.#clock.now() - sentAt;
    const at = this.#clock.monotonic();
    const seen = this.#senders.get(from);
    if (!seen) {
      this.#senders.set(from, { since: at, now: way, before: way });
      return 0;
    }
    // Only when something arrives: after a long pause the requests that waited are measured against what was before it.
    if (at - seen.since >= GENERATION_MS) {
      seen.since = at;
      seen.before = seen.now;
      seen.now = way;
    } else if (way < seen.now) seen.now = way;
    return way - Math.min(seen.now, seen.before);
  }
}
