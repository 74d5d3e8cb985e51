/** The only place that reads the machine's clocks. Deadlines use monotonic time, records use wall time. */
export interface Clock {
  /** Wall time in ms since 1970. May jump. */
  now(): number;
  /** Monotonic time in ms from an arbitrary point. Never goes back; stands still while the machine sleeps. */
  monotonic(): number;
  /** Resolves after `ms`, or at once when the signal is aborted: a sleeper looks at its signal anyway. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Calls back once after `ms`; the returned function calls it off. */
  after(ms: number, callback: () => void): () => void;
  /** Resolves in the next turn of the event loop, after what is ready to run now. */
  turn(): Promise<void>;
}

/** Longer timers overflow in Node and fire at once. */
const TIMER_MS_MAX = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep(ms, signal) {
    return new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const done = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", done);
        resolve();
      };
      const timer = setTimeout(done, Math.min(Math.max(ms, 0), TIMER_MS_MAX));
      signal?.addEventListener("abort", done, { once: true });
    });
  },
  after(ms, callback) {
    const timer = setTimeout(callback, Math.min(Math.max(ms, 0), TIMER_MS_MAX));
    return () => clearTimeout(timer);
  },
  turn: () => new Promise((resolve) => setImmediate(resolve)),
};
