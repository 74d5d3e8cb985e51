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

export type Watchdog = ReturnType<typeof watchdogOf>;

export function watchdogOf({ clock, log }: Pick<Platform, "clock" | "log">, limitMs = LIMIT_MS) {
  const all = new Map<string, Watched>();

  /** A timer that outlives its duty is not the duty. */
  function wakes(watched: Watched): void {
    if (watched.running) watched.busySince = clock.monotonic();
  }

  function clockOf(watched: Watched): Clock {
    return {
      now: () => clock.now(),
      monotonic: () => clock.monotonic(),
      turn: () => clock.turn(),
      sleep: async (ms, signal) => {
        watched.busySince = null;
        await clock.sleep(ms, signal);
        wakes(watched);
      },
      after: (ms, callback) => {
        watched.busySince = null;
        const callOff = clock.after(ms, () => {
          wakes(watched);
          callback();
        });
        return () => {
          wakes(watched);
          callOff();
        };
      },
    };
  }

  /** How long each has been busy; 0 for those that rest. */
  function busy(): readonly StuckLoop[] {
    const now = clock.monotonic();
    return [...all].map(([duty, { busySince }]) => {
      return { duty, busyMs: busySince === null ? 0 : now - busySince };
    });
  }

  const stuck = (): readonly StuckLoop[] => busy().filter(({ busyMs }) => busyMs >= limitMs);

  return {
    busy,
    stuck,
    failures: () => [...all].map(([duty, { failures }]) => ({ duty, failures })),

    /** A duty that is made with the clock it is given is watched for as long as it runs. */
    duty(name: string, make: (clock: Clock) => Duty): Duty {
      const watched: Watched = { busySince: null, running: false, failures: 0, reported: false };
      all.set(name, watched);
      const duty = make(clockOf(watched));
      return async (term, signal) => {
        watched.running = true;
        wakes(watched);
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
    },

    /** Logs duties that hang, and those that continue; to be called at intervals. */
    look(): void {
      const hanging = new Map(stuck().map(({ duty, busyMs }) => [duty, busyMs]));
      for (const [duty, watched] of all) {
        const busyMs = hanging.get(duty);
        if (busyMs !== undefined && !watched.reported)
          log.error({ duty, busyMs: Math.round(busyMs) }, "a leader's duty hangs");
        if (busyMs === undefined && watched.reported) log.info({ duty }, "a leader's duty goes on");
        watched.reported = busyMs !== undefined;
      }
    },
  };
}
