/**
 * Polls whether the incarnations that callers wait for are still connected, with one command for all of them. A report
 * is only a reason to try: the script of the grant checks again.
 */

import type { Clock } from "../../platform/clock.ts";
import { Loop } from "../../platform/loop.ts";
import type { ControlSession } from "./control-session.ts";

interface Watched {
  readonly listeners: Set<() => void>;
  /** Whether any poll of this connection found it. */
  seen: boolean;
  /** Since when every poll has missed it; null when the last one found it. */
  missingSince: number | null;
}

/** Twenty polls a second take 1 % of a slow core. Shorter, and an idle standby costs more than the moment is worth. */
const POLL_MS = 50;
/** Shorter, and a leader that only has to connect again, which takes some 10 ms, loses its term. */
const GONE_MS = 20;
/** Timers may fire a little early. */
const TIMER_SLACK_MS = 2;
/**
 * For one that was never found since we connected, as after a restart of Redis. Shorter, and a leader that pauses up to
 * 1.5 s between its attempts to connect loses its term.
 */
const NEVER_SEEN_MS = 2_000;

export class IncarnationWatch {
  readonly #clock: Clock;
  readonly #control: Pick<ControlSession, "send">;
  readonly #watched = new Map<string, Watched>();
  readonly #polls: Loop;
  #polling = false;

  constructor(clock: Clock, control: Pick<ControlSession, "send">) {
    this.#clock = clock;
    this.#control = control;
    this.#polls = new Loop(clock, () => this.#poll());
  }

  watch(channel: string, onGone: () => void): () => void {
    const watched = this.#watched.get(channel) ?? { listeners: new Set(), seen: false, missingSince: null };
    watched.listeners.add(onGone);
    this.#watched.set(channel, watched);
    // At once: one that dies in a moment must have been seen before.
    if (!this.#polling) this.#polls.start();
    this.#polling = true;
    return () => {
      watched.listeners.delete(onGone);
      if (watched.listeners.size === 0 && this.#watched.get(channel) === watched)
        this.#watched.delete(channel);
    };
  }

  /** The connection broke: what it showed says nothing about what the next one shows. */
  lost(): void {
    for (const watched of this.#watched.values()) {
      watched.seen = false;
      watched.missingSince = null;
    }
  }

  stop(): void {
    this.#watched.clear();
    this.#polling = false;
    void this.#polls.stop();
  }

  async #poll(): Promise<number> {
    const channels = [...this.#watched.keys()];
    if (channels.length === 0) {
      this.stop();
      return 0;
    }
    let missing = false;
    try {
      const counts = await this.#control.send<(string | number)[]>(["PUBSUB", "NUMSUB", ...channels]);
      const at = this.#clock.monotonic();
      for (let i = 0; i < counts.length; i += 2) {
        if (this.#found(String(counts[i]), Number(counts[i + 1]) > 0, at)) missing = true;
      }
    } catch {
      // Not connected: `lost` was called, and a later poll finds out.
    }
    return missing ? GONE_MS + TIMER_SLACK_MS : POLL_MS;
  }

  #found(channel: string, there: boolean, at: number): boolean {
    const watched = this.#watched.get(channel);
    if (!watched) return false;
    if (there) {
      watched.seen = true;
      watched.missingSince = null;
      return false;
    }
    watched.missingSince ??= at;
    if (at - watched.missingSince < (watched.seen ? GONE_MS : NEVER_SEEN_MS)) return watched.seen;
    this.#watched.delete(channel);
    for (const tell of watched.listeners) tell();
    return false;
  }
}
