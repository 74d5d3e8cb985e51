/** Everybody tells everybody, at the same time and each with a deadline: whoever is silent holds up nobody. */

import type { NodeName } from "../../core/ids.ts";
import type { Clock } from "../../platform/clock.ts";
import { heartbeatAnswer, PATHS, type HeartbeatAnswer, type Presence } from "./messages.ts";
import type { PeerCalls } from "./peer-calls.ts";
import type { Roster } from "./roster.ts";
import type { Sightings } from "./sightings.ts";

export interface HeartbeatsOptions {
  readonly clock: Clock;
  readonly heartbeatMs: number;
  readonly heartbeatTimeoutMs: number;
  readonly roster: Roster;
  readonly calls: PeerCalls;
  readonly presence: () => Presence;
  readonly sightings: Sightings;
  readonly onAnswer: (answer: HeartbeatAnswer) => Promise<void>;
}

export class Heartbeats {
  readonly #o: HeartbeatsOptions;
  /** One at a time for each peer, however slow it is. */
  readonly #underWay = new Map<NodeName, Promise<void>>();
  #stopping = new AbortController();
  #loop: Promise<void> = Promise.resolve();

  constructor(options: HeartbeatsOptions) {
    this.#o = options;
  }

  start(): void {
    this.#stopping = new AbortController();
    this.#o.sightings.begin();
    this.#loop = this.#run(this.#stopping.signal);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#loop;
  }

  /** Tells everybody now; resolves when all have answered, or after `waitMs`. */
  async tellAll(waitMs: number): Promise<void> {
    const told = Promise.all(this.#o.roster.others().map((peer) => this.#tell(peer)));
    const limit = new AbortController();
    await Promise.race([told, this.#o.clock.sleep(waitMs, limit.signal)]);
    limit.abort();
  }

  /** Asks one peer how it is now. */
  greet(peer: NodeName): Promise<void> {
    return this.#underWay.get(peer) ?? this.#tell(peer);
  }

  async #run(stopping: AbortSignal): Promise<void> {
    while (!stopping.aborted) {
      this.#o.sightings.look();
      for (const peer of this.#o.roster.others()) {
        if (this.#underWay.has(peer)) continue;
        const told = this.#tell(peer).finally(() => this.#underWay.delete(peer));
        this.#underWay.set(peer, told);
      }
      await this.#o.clock.sleep(this.#o.heartbeatMs, stopping);
    }
  }

  async #tell(peer: NodeName): Promise<void> {
    const { calls, presence, roster, heartbeatTimeoutMs, onAnswer } = this.#o;
    const own = presence();
    const body = { from: own.node, set: roster.number, ...own };
    const options = { deadlineMs: heartbeatTimeoutMs };
    const asked = await calls.ask(peer, PATHS.heartbeat, body, heartbeatAnswer, options);
    if ("answer" in asked) await onAnswer(asked.answer);
  }
}
