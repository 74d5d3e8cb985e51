/** Tests whether an HTTP server answers at an address, and how fast, with the smallest possible request. */

import type { Agent } from "undici";
import type { Clock } from "./clock.ts";
import { Deadline } from "./loop.ts";

export interface Probe {
  /** Null when it answered with anything at all; else why not. */
  ask(url: string, deadlineMs: number): Promise<string | null>;
  close(): Promise<void>;
}

export function httpProbe(clock: Clock): Probe {
  let agent: Agent | null = null;
  return {
    async ask(url, deadlineMs) {
      // A connection for each address stays open between two looks, so that a look costs next to nothing.
      const undici = await import("undici");
      agent ??= new undici.Agent({
        connections: 1,
        keepAliveTimeout: 30_000,
        connect: { timeout: deadlineMs },
      });
      using late = new Deadline(clock, deadlineMs);
      try {
        const answer = await undici.request(url, { dispatcher: agent, signal: late.signal });
        await answer.body.dump();
        return null;
      } catch (error) {
        const { code, message } = error as { code?: string; message?: string };
        return late.expired ? `no answer within ${deadlineMs} ms` : (code ?? message ?? "unknown");
      }
    },
    async close() {
      await agent?.destroy();
      agent = null;
    },
  };
}
