/**
 * Free ports below 32768: the system takes the ports of outgoing connections from above, so a server that is stopped and started
 * again finds its port free. A port belongs to the process that was given it until that ends, whether or not somebody listens
 * there: test files run side by side.
 */

import { randomInt } from "node:crypto";
import { mkdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const LOWEST = 12_000;
const HIGHEST = 32_000;
/** A file for each port that was given out, with the pid of its owner. */
const OWNERS = join(tmpdir(), "baton-test-ports");
const ours: string[] = [];
process.once("exit", () => {
  for (const path of ours) rmSync(path, { force: true });
  try {
    rmdirSync(OWNERS);
  } catch {
    // Others have ports, or there was none.
  }
});

export async function freePort(): Promise<number> {
  const [port] = await freePorts(1);
  return port!;
}

export async function freePorts(count: number): Promise<number[]> {
  const ports = new Set<number>();
  while (ports.size < count) {
    const port = randomInt(LOWEST, HIGHEST);
    if (!ports.has(port) && isNobodys(port) && (await isFree(port))) ports.add(port);
  }
  return [...ports];
}

function isNobodys(port: number): boolean {
  const path = join(OWNERS, String(port));
  try {
    mkdirSync(OWNERS, { recursive: true });
    writeFileSync(path, String(process.pid), { flag: "wx" });
    ours.push(path);
    return true;
  } catch {
    // Another port is tried. What an owner that was killed has left is there for the next who asks.
    if (!isAlive(path)) rmSync(path, { force: true });
    return false;
  }
}

function isAlive(path: string): boolean {
  try {
    return process.kill(Number(readFileSync(path, "utf8")), 0);
  } catch {
    return false;
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen({ port, host: "127.0.0.1", exclusive: true }, () => server.close(() => resolve(true)));
  });
}
