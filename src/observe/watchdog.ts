/**
 * Detects loops that no longer make progress. Each gets its own clock, and is busy while it does not sleep on it. A duty
 * that waits for a store which never answers would otherwise show nowhere.
 */

import type { Clock } from "../platform/clock.ts";
import type { Platform } from "../platform/platform.ts";
import type { Duty } from "../core/leadership/term.ts";

export interface StuckLoop {
  readonly duty: string;
  readonly busyMs: number;
}

interface Watched {
  /** Since when it has been busy; null while it rests or does not run. */
  busySince: number | null;
  running: boolean;
  failures: number;
  reported: boolean;
}

/** Longer than a store call may take with its tries, or every outage of a database is reported here again. */
const LIMIT_MS = 60_000;

export class Watchdog {
  readonly #platform: Pick<Platform, "clock" | "log">;
  readonly #limitMs: number;
  readonly #watched = new Map<string, Watched>();

  constructor(platform: Pick<Platform, "clock" | "log">, limitMs = LIMIT_MS) {
    this.#platform = platform;
    this.#limitMs = limitMs;
  }

  /** A duty that is made with the clock it is given is watched for as long as it runs. */
  duty(name: string, make: (clock: Clock) => Duty): Duty {
    const watched: Watched = { busySince: null, running: false, failures: 0, reported: false };
    this.#watched.set(name, watched);
    const duty = make(this.#clockOf(watched));
    return async (term, signal) => {
      watched.running = true;
      this.#busy(watched);
      try {
        await duty(term, signal);
      } catch (error) {
        if (!signal.aborted) watched.failures++;
        throw error;
      } finally {
        watched.running = false;
        watched.busySince = null;
      }
    };
  }

  /** How long each has been busy; 0 for those that rest. */
  busy(): readonly StuckLoop[] {
    const now = this.#platform.clock.monotonic();
    return [...this.#watched].map(([duty, { busySince }]) => {
      return { duty, busyMs: busySince === null ? 0 : now - busySince };
    });
  }

  failures(): readonly { readonly duty: string; readonly failures: number }[] {
    return [...this.#watched].map(([duty, { failures }]) => ({ duty, failures }));
  }

  stuck(): readonly StuckLoop[] {
    return this.busy().filter(({ busyMs }) => busyMs >= this.#limitMs);
  }

  /** Logs duties that hang, and those that continue; to be called at intervals. */
  look(): void {
    const stuck = new Map(this.stuck().map(({ duty, busyMs }) => [duty, busyMs]));
    for (const [duty, watched] of this.#watched) {
      const busyMs = stuck.get(duty);
      if (busyMs !== undefined && !watched.reported)
        this.#platform.log.error({ duty, busyMs: Math.round(busyMs) }, "a leader's duty hangs");
      if (busyMs === undefined && watched.reported)
        this.#platform.log.info({ duty }, "a leader's duty goes on");
      watched.reported = busyMs !== undefined;
    }
  }

  #busy(watched: Watched): void {
    // A timer that outlives its duty is not the duty.
    if (watched.running) watched.busySince = this.#platform.clock.monotonic();
  }

  #clockOf(watched: Watched): Clock {
    const { clock } = this.#platform;
    const rests = (): void => {
      watched.busySince = null;
    };
    const wakes = (): void => this.#busy(watched);
    return {
      now: () => clock.now(),
      monotonic: () => clock.monotonic(),
      turn: () => clock.turn(),
      sleep: async (ms, signal) => {
        rests();
        await clock.sleep(ms, signal);
        wakes();
      },
      after: (ms, callback) => {
        rests();
        const callOff = clock.after(ms, () => {
          wakes();
          callback();
        });
        return () => {
          wakes();
          callOff();
        };
      },
    };
  }
}
