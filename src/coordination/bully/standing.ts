/** Whether this node stands for leader, whom it lets go first, and when trying is worth it. */

import type { NodeName } from "../../core/ids.ts";
import type { Clock } from "../../platform/clock.ts";
import { Feed } from "../feed.ts";

export interface StandingOptions {
  readonly clock: Clock;
  /** How long a higher peer that says it stands is waited for before it is passed over. */
  readonly patienceMs: number;
}

export class Standing {
  readonly #o: StandingOptions;
  readonly #hints = new Feed<void>();
  #followers = 0;
  #resting = false;
  /** Since when, in this vacancy, we stood back for whom. */
  readonly #backSince = new Map<NodeName, number>();

  constructor(options: StandingOptions) {
    this.#o = options;
  }

  /** An elector follows the hints, and has not just given its term back to let others go first. */
  get stands(): boolean {
    return this.#followers > 0 && !this.#resting;
  }

  stand(): void {
    this.#resting = false;
  }

  rest(): void {
    this.#resting = true;
  }

  /** A peer that answers and cannot win, because others do not hear it, must not keep everybody from leading for ever. */
  standsBackFor(peer: NodeName): boolean {
    const at = this.#o.clock.monotonic();
    const since = this.#backSince.get(peer) ?? at;
    this.#backSince.set(peer, since);
    return at - since < this.#o.patienceMs;
  }

  /** Somebody leads: the next vacancy begins with patience for everybody. */
  filled(): void {
    this.#backSince.clear();
  }

  hint(): void {
    this.#hints.push();
  }

  async *hints(signal: AbortSignal): AsyncGenerator<void> {
    this.#followers += 1;
    try {
      yield* this.#hints.follow(signal);
    } finally {
      this.#followers -= 1;
    }
  }
}
