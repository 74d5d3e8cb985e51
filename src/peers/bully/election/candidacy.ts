/** Whether this node is a candidate, to which peers it yields, and when an attempt is useful. */

import type { NodeName } from "../../../core/ids.ts";
import { Feed } from "../../../platform/feed.ts";
import type { PeerState } from "../peer-state.ts";

export class Candidacy {
  readonly #state: PeerState;
  readonly #hints = new Feed<void>();
  #followers = 0;
  #resting = false;
  /** Since when, in this vacancy, this node has stood back for a peer. */
  readonly #backSince = new Map<NodeName, number>();

  constructor(state: PeerState) {
    this.#state = state;
    const { events, leader, voter } = state;
    const hint = (): void => this.hint();
    events.on("peers", hint);
    events.on("vacant", hint);
    events.on("ready", hint);
    events.on("evidence", () => leader.epoch > 0 && !leader.current() && this.hint());
    // Before the first election every new voter may complete the majority.
    events.on("voter", () => voter.epoch === 0 && this.hint());
    // The next vacancy begins with patience for every peer.
    events.on("leader", () => leader.current() && this.#backSince.clear());
  }

  /** An elector follows the hints, and has not just released its term to let others go first. */
  get stands(): boolean {
    return this.#followers > 0 && !this.#resting;
  }

  stand(): void {
    this.#resting = false;
  }

  rest(): void {
    this.#resting = true;
  }

  /** Not for ever: a peer that answers and cannot win, because others do not hear it, must not keep every node from leading. */
  standsBackFor(peer: NodeName): boolean {
    const { clock, settings } = this.#state;
    const at = clock.monotonic();
    const since = this.#backSince.get(peer) ?? at;
    this.#backSince.set(peer, since);
    return at - since < 2 * settings.electionTimeoutMs;
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
