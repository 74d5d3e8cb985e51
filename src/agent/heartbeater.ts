/**
 * Reports to the leader that this agent is alive and how many jobs it runs, also while a handler blocks the event loop.
 * An agent that runs no jobs sends no heartbeats, because the leader knows it by its waiting poll. Instead it asks
 * another node whether that leader still leads. Either call that finds another leader moves the waiting poll to it (see
 * LeaderConnection).
 */

import type { HeartbeatRequest } from "../client/controller-calls.ts";
import type { LeaderConnection } from "../client/connection/leader-connection.ts";
import type { Clock } from "../platform/clock.ts";
import type { Random } from "../platform/random.ts";
import { BackOff } from "./back-off.ts";

export interface HeartbeaterOptions {
  readonly agent: string;
  readonly capabilities: readonly string[];
  readonly version: string;
  readonly leader: LeaderConnection;
  readonly clock: Clock;
  readonly random: Random;
  readonly running: () => number;
}

/** Three beats within the time after which an agent counts as stale (15 s by default). */
const BEAT_MS = 5_000;
/** With every second beat an agent that runs nothing checks whether its leader still leads. Later, and it waits longer in vain at one that hangs. */
const CHECK_BEATS = 2;
/** Also how soon a leader that hangs is noticed by an agent that waits for jobs. Shorter, and a busy one looks dead. */
const CALL_TIMEOUT_MS = 3_000;

export class Heartbeater {
  readonly #o: HeartbeaterOptions;
  readonly #stopped = new AbortController();
  /** How many jobs the leader knows of; null if the last heartbeat failed. */
  #reported: number | null = null;

  constructor(options: HeartbeaterOptions) {
    this.#o = options;
  }

  start(): void {
    void this.#run();
  }

  stop(): void {
    this.#stopped.abort();
  }

  /** The last heartbeat: which answers are not waited for. Tries for so long. */
  async finish(unanswered: readonly string[], withinMs: number): Promise<void> {
    this.stop();
    if (unanswered.length === 0) return;
    const over = new AbortController();
    const cancel = this.#o.clock.after(withinMs, () => over.abort());
    const backOff = new BackOff(this.#o);
    while (!over.signal.aborted) {
      try {
        await this.#beat({ running: 0, unanswered: [...unanswered] }, over.signal);
        break;
      } catch {
        await backOff.failed(over.signal);
      }
    }
    cancel();
  }

  async #run(): Promise<void> {
    const { clock, random } = this.#o;
    const { signal } = this.#stopped;
    for (let beat = 0; !signal.aborted; beat++) {
      // A heartbeat that fails is followed by the next one; the poller reports that there is no leader.
      if (this.#o.running() !== 0 || this.#reported !== 0) await this.#report(signal);
      else if (beat % CHECK_BEATS === 0) await this.#checkLeader(signal);
      // Spread a little, so that agents that started together do not beat together for ever.
      await clock.sleep(BEAT_MS * (0.9 + 0.2 * random.chance()), signal);
    }
  }

  async #checkLeader(signal: AbortSignal): Promise<void> {
    if ((await this.#o.leader.checkLeader(CALL_TIMEOUT_MS, signal)) === "silent") await this.#report(signal);
  }

  async #report(signal: AbortSignal): Promise<void> {
    const running = this.#o.running();
    const heard = this.#beat({ running }, signal).then(
      () => running,
      () => null,
    );
    this.#reported = await heard;
  }

  async #beat(fields: Pick<HeartbeatRequest, "running" | "unanswered">, signal: AbortSignal): Promise<void> {
    const { agent, capabilities, version, leader } = this.#o;
    const beat: HeartbeatRequest = { agent, capabilities: [...capabilities], version, ...fields };
    await leader.call({
      method: "POST",
      path: "/v1/agents/heartbeat",
      body: JSON.stringify(beat),
      timeoutMs: CALL_TIMEOUT_MS,
      signal,
    });
  }
}
