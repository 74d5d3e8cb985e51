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
    startMeter() {
      globalThis.gc?.();
      from = process.cpuUsage();
    },
    readMeter() {
      const { user, system } = process.cpuUsage(from);
      return user + system;
    },
  };
}
