/** Tests whether an HTTP server answers at an address, and how fast, with the smallest possible request. */

import http from "node:http";
import https from "node:https";
import type { Clock } from "./clock.ts";
import { Deadline } from "./loop.ts";

export interface Probe {
  /** Null when it answered with anything at all; else why not. */
  ask(url: string, deadlineMs: number): Promise<string | null>;
  close(): Promise<void>;
}

export function httpProbe(clock: Clock): Probe {
  // A connection for each address stays open between two looks, so that a look costs next to nothing.
  const options = { keepAlive: true, maxSockets: 1 };
  const agents = { "http:": new http.Agent(options), "https:": new https.Agent(options) };
  return {
    async ask(url, deadlineMs) {
      using late = new Deadline(clock, deadlineMs);
      try {
        await answered(url, agents, late.signal);
        return null;
      } catch (error) {
        const { code, message } = error as { code?: string; message?: string };
        return late.expired ? `no answer within ${deadlineMs} ms` : (code ?? message ?? "unknown");
      }
    },
    async close() {
      for (const agent of Object.values(agents)) agent.destroy();
    },
  };
}

interface Agents {
  readonly "http:": http.Agent;
  readonly "https:": https.Agent;
}

async function answered(url: string, agents: Agents, signal: AbortSignal): Promise<void> {
  const isSecure = url.startsWith("https:");
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const request = isSecure
    ? https.get(url, { agent: agents["https:"], signal })
    : http.get(url, { agent: agents["http:"], signal });
  request.once("error", reject);
  request.once("response", (reply) => {
    reply.once("end", resolve).once("error", reject).resume();
  });
  try {
    await promise;
  } catch (error) {
    // The server closed it while it was idle, before it could know of this request.
    const isStale = request.reusedSocket && (error as NodeJS.ErrnoException).code === "ECONNRESET";
    if (!isStale) throw error;
    await answered(url, agents, signal);
  }
}
