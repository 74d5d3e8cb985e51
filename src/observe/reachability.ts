/**
 * Checks whether this node can reach the others at the addresses that they report. The leader decides which nodes are
 * dead; this is for people, because nothing else would show a node that is alive but unreachable from some others.
 */

import http from "node:http";
import https from "node:https";
import type { NodeInfo, Reach } from "../core/node.ts";
import type { Clock } from "../platform/clock.ts";
import { Deadline, Loop } from "../platform/loop.ts";
import type { Platform } from "../platform/platform.ts";
import { serviceOf } from "../platform/service.ts";

const ROUND_MS = 5_000;
const DEADLINE_MS = 1_000;
/** Of a large cluster, so many in a round, in turn: the result is part of every heartbeat. */
const EACH_MAX = 20;

export function reachability(
  { clock, identity }: Pick<Platform, "clock" | "identity">,
  nodes: () => readonly NodeInfo[],
  probe: Probe,
) {
  let reach: readonly Reach[] = [];
  let from = 0;
  const loop = new Loop(clock, async () => {
    reach = await Promise.all(chosen().map(ask));
    return ROUND_MS;
  });

  function chosen(): readonly NodeInfo[] {
    const others = nodes().filter((node) => node.incarnation !== identity.incarnation && node.alive);
    if (others.length <= EACH_MAX) return others;
    from = (from + EACH_MAX) % others.length;
    return [...others, ...others].slice(from, from + EACH_MAX);
  }

  async function ask({ name, url }: NodeInfo): Promise<Reach> {
    if (url === null) return { node: name, ok: false, latencyMs: null, reason: "it tells no address" };
    const sentAt = clock.monotonic();
    const reason = await probe.ask(`${url.replace(/\/+$/, "")}/livez`, DEADLINE_MS);
    const latencyMs = Math.round((clock.monotonic() - sentAt) * 10) / 10;
    return { node: name, ok: reason === null, latencyMs: reason === null ? latencyMs : null, reason };
  }

  async function stop(): Promise<void> {
    const stopped = loop.stop();
    await probe.close();
    await stopped;
    reach = [];
  }

  return Object.assign(
    serviceOf(() => loop.start(ROUND_MS), stop),
    { read: () => reach },
  );
}

/** Tests whether an HTTP server answers at an address, and how fast, with the smallest possible request. */
export interface Probe {
  /** Null when it answered with anything at all; else why not. */
  ask(url: string, deadlineMs: number): Promise<string | null>;
  close(): Promise<void>;
}

export function httpProbe(clock: Clock): Probe {
  // A connection for each address stays open between two looks, so that a look costs next to nothing.
  const options = { keepAlive: true, maxSockets: 1 };
  const plain = { get: http.get, agent: new http.Agent(options) };
  const secure = { get: https.get, agent: new https.Agent(options) };

  async function answered(url: string, signal: AbortSignal): Promise<void> {
    const { get, agent } = url.startsWith("https:") ? secure : plain;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const request = get(url, { agent, signal });
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
      await answered(url, signal);
    }
  }

  return {
    async ask(url, deadlineMs) {
      using late = new Deadline(clock, deadlineMs);
      try {
        await answered(url, late.signal);
        return null;
      } catch (error) {
        const { code, message } = error as { code?: string; message?: string };
        return late.expired ? `no answer within ${deadlineMs} ms` : (code ?? message ?? "unknown");
      }
    },
    async close() {
      plain.agent.destroy();
      secure.agent.destroy();
    },
  };
}
