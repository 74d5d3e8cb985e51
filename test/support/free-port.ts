/**
 * Free ports below 32768: the system takes the ports of outgoing connections from above, so a server that is stopped and started
 * again finds its port free.
 */

import { randomInt } from "node:crypto";
import { createServer } from "node:net";

const LOWEST = 12_000;
const HIGHEST = 32_000;

export async function freePort(): Promise<number> {
  const [port] = await freePorts(1);
  return port!;
}

export async function freePorts(count: number): Promise<number[]> {
  const ports = new Set<number>();
  while (ports.size < count) {
    const port = randomInt(LOWEST, HIGHEST);
    if (!ports.has(port) && (await isFree(port))) ports.add(port);
  }
  return [...ports];
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen({ port, host: "127.0.0.1", exclusive: true }, () => server.close(() => resolve(true)));
  });
}
