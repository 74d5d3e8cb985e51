/**
 * Reports to the leader how many jobs this agent runs. One that runs none sends no heartbeats, because the leader knows it by its
 * waiting poll. Instead it asks another node whether that leader still leads. Either call that finds another leader moves the
 * waiting poll to it (see ClusterConnection).
 */

import type { HeartbeatRequest } from "../client/controller-calls.ts";
import { Deadline, Loop, retry } from "../platform/loop.ts";
import type { LinkContext } from "./link-messages.ts";

type Sign = Pick<HeartbeatRequest, "agent" | "capabilities" | "version">;

/** Three beats within the time after which an agent counts as stale (15 s by default). */
const BEAT_MS = 5_000;
/** With every second beat an agent that runs nothing checks whether its leader still leads. Later, and it waits longer in vain at one that hangs. */
const CHECK_BEATS = 2;
/** Also how soon a leader that hangs is noticed by an agent that waits for jobs. Shorter, and a busy one looks dead. */
const CALL_TIMEOUT_MS = 3_000;

export class Heartbeater {
  readonly #link: LinkContext;
  readonly #sign: Sign;
  readonly #running: () => number;
  readonly #loop: Loop;
  #beats = 0;
  /** How many jobs the leader knows of; null if the last heartbeat failed. */
  #reported: number | null = null;

  constructor(link: LinkContext, sign: Sign, running: () => number) {
    this.#link = link;
    this.#sign = sign;
    this.#running = running;
    this.#loop = new Loop(link.platform.clock, (signal) => this.#step(signal));
  }

  start(): void {
    this.#loop.start();
  }

  stop(): Promise<void> {
    return this.#loop.stop();
  }

  /** The last heartbeat: which answers are not waited for. Tries for so long. */
  async finish(unanswered: readonly string[], withinMs: number): Promise<void> {
    await this.stop();
    if (unanswered.length === 0) return;
    const { clock } = this.#link.platform;
    const backoff = this.#link.leader.backoff();
    using limit = new Deadline(clock, withinMs);
    const beat = (): Promise<void> => this.#beat({ running: 0, unanswered: [...unanswered] }, limit.signal);
    await retry(clock, beat, () => backoff.next(), limit.signal).catch(() => {}); // the time is over
  }

  async #step(signal: AbortSignal): Promise<number> {
    // A heartbeat that fails is followed by the next one; the poller reports that there is no leader.
    if (this.#running() !== 0 || this.#reported !== 0) await this.#report(signal);
    else if (this.#beats % CHECK_BEATS === 0) {
      const found = await this.#link.leader.checkLeader(CALL_TIMEOUT_MS, signal);
      if (found === "silent") await this.#report(signal);
    }
    this.#beats++;
    // Spread a little, so that agents that started together do not beat together for ever.
    return BEAT_MS * (0.9 + 0.2 * this.#link.platform.random.chance());
  }

  async #report(signal: AbortSignal): Promise<void> {
    const running = this.#running();
    const heard = this.#beat({ running }, signal).then(() => running);
    this.#reported = await heard.catch(() => null);
  }

  async #beat(fields: Pick<HeartbeatRequest, "running" | "unanswered">, signal: AbortSignal): Promise<void> {
    const beat: HeartbeatRequest = { ...this.#sign, ...fields };
    const options = { timeoutMs: CALL_TIMEOUT_MS, signal };
    await this.#link.leader.postToLeader("/v1/agents/heartbeat", () => JSON.stringify(beat), options);
  }
}
