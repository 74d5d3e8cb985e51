/** A server under load. */

export interface HttpSide {
  /** Starts afresh where there is something to forget; gives the address. */
  reset(): Promise<string>;
  startMeter(): void;
  /** CPU time since then, in µs. */
  readMeter(): number;
  close(): Promise<void>;
}

export function cpuMeter(): Pick<HttpSide, "startMeter" | "readMeter"> {
  let from = process.cpuUsage();
  return {
    // Without a collection before: one that is forced while nothing runs throws away what the compiler has learned of short-lived
    // objects, and the next ten thousand requests cost twice as much.
    startMeter() {
      from = process.cpuUsage();
    },
    readMeter() {
      const { user, system } = process.cpuUsage(from);
      return user + system;
    },
  };
}
