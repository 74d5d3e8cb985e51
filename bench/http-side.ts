/** A server under load, in a process of its own. */

import type { AddressInfo } from "node:net";
import type { FastifyInstance } from "fastify";

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

/** A server without anything to forget, from now on. `stop` ends what it stands on. */
export async function serve(
  app: FastifyInstance,
  stop: () => Promise<unknown> = async () => {},
): Promise<HttpSide> {
  await app.listen({ host: "127.0.0.1", port: 0 });
  const { port } = app.server.address() as AddressInfo;
  return {
    reset: async () => `http://127.0.0.1:${port}`,
    ...cpuMeter(),
    async close() {
      await stop();
      app.server.closeAllConnections();
      await app.close();
    },
  };
}
