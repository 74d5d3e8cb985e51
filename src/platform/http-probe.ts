/** Tests whether an HTTP server answers at an address, and how fast, with the smallest possible request. */

import type { Agent } from "undici";
import type { Clock } from "./clock.ts";

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
      const late = new AbortController();
      const callOff = clock.after(deadlineMs, () => late.abort());
      try {
        const answer = await undici.request(url, { dispatcher: agent, signal: late.signal });
        await answer.body.dump();
        return null;
      } catch (error) {
        return late.signal.aborted ? `no answer within ${deadlineMs} ms` : reasonOf(error);
      } finally {
        callOff();
      }
    },
    async close() {
      await agent?.destroy();
      agent = null;
    },
  };
}

function reasonOf(error: unknown): string {
  const { code, message } = error as { code?: string; message?: string };
  return code ?? message ?? "unknown";
}
