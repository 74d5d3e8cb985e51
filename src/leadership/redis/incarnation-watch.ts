/**
 * Checks whether the incarnations that callers wait for are still alive, with one small command for all of them, and
 * reports each end at most once. A report is only a reason to try: the script of the grant checks again.
 */

import type { Clock } from "../../platform/clock.ts";
import type { ControlSession } from "./control-session.ts";

export interface IncarnationWatchOptions {
  readonly control: ControlSession;
  readonly clock: Clock;
  readonly lookMs?: number;
}

interface Watched {
  readonly onGone: () => void;
  /** Whether it was there in any look of this connection. */
  seen: boolean;
  /** Since when it was missing in every look; null when it was there in the last one. */
  missingSince: number | null;
}

/** Twenty looks a second take 1 % of a slow core. Shorter, and an idle standby costs more than the moment is worth. */
const LOOK_MS = 50;
/** Shorter, and a leader that only has to connect again, which takes some 10 ms, loses its term. */
const GONE_MS = 20;
/** Timers may fire a little early. */
const TIMER_SLACK_MS = 2;
/**
 * Of one that was never there since we connected ourselves, as after a restart of Redis. Shorter, and the leader loses its term
 * because it pauses longer than we do between its attempts to connect, up to 1.5 s.
 */
const NEVER_SEEN_MS = 2_000;

export class IncarnationWatch {
  readonly #o: IncarnationWatchOptions;
  readonly #watched = new Map<string, Set<Watched>>();
  /** The run of looks under way; another object after a stop. */
  #run: { callOff: () => void } | null = null;

  constructor(options: IncarnationWatchOptions) {
    this.#o = options;
  }

  /** The returned function ends the watch. */
  watch(life: string, onGone: () => void): () => void {
    const watched: Watched = { onGone, seen: false, missingSince: null };
    const group = this.#watched.get(life) ?? new Set();
    this.#watched.set(life, group.add(watched));
    // At once: whoever dies in a moment must have been seen before.
    if (!this.#run) {
      this.#run = { callOff: () => {} };
      this.#schedule(this.#run, 0);
    }
    return () => this.#forget(life, watched);
  }

  /** The connection broke: what it showed says nothing about what the next one shows. */
  lost(): void {
    for (const group of this.#watched.values()) {
      for (const watched of group) {
        watched.seen = false;
        watched.missingSince = null;
      }
    }
  }

  stop(): void {
    this.#watched.clear();
    this.#run?.callOff();
    this.#run = null;
  }

  #forget(life: string, watched: Watched): void {
    const group = this.#watched.get(life);
    if (group?.delete(watched) && group.size === 0) this.#watched.delete(life);
  }

  #schedule(run: { callOff: () => void }, inMs: number): void {
    run.callOff = this.#o.clock.after(inMs, () => void this.#look(run));
  }

  async #look(run: { callOff: () => void }): Promise<void> {
    const lives = [...this.#watched.keys()];
    if (lives.length === 0) {
      this.#run = null;
      return;
    }
    let missing = false;
    try {
      const counts = await this.#o.control.send<(string | number)[]>(["PUBSUB", "NUMSUB", ...lives]);
      const at = this.#o.clock.monotonic();
      for (let i = 0; i < counts.length; i += 2) {
        if (this.#found(String(counts[i]), Number(counts[i + 1]) > 0, at)) missing = true;
      }
    } catch {
      // Not connected: `lost` was called, and a later look finds out.
    }
    if (this.#run === run)
      this.#schedule(run, missing ? GONE_MS + TIMER_SLACK_MS : (this.#o.lookMs ?? LOOK_MS));
  }

  /** Whether another look decides soon. */
  #found(life: string, there: boolean, at: number): boolean {
    let open = false;
    for (const watched of this.#watched.get(life) ?? []) {
      if (there) {
        watched.seen = true;
        watched.missingSince = null;
        continue;
      }
      watched.missingSince ??= at;
      if (at - watched.missingSince < (watched.seen ? GONE_MS : NEVER_SEEN_MS)) {
        open ||= watched.seen;
        continue;
      }
      this.#forget(life, watched);
      watched.onGone();
    }
    return open;
  }
}
