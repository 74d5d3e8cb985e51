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
import { Lifecycle } from "../platform/service.ts";

const ROUND_MS = 5_000;
const DEADLINE_MS = 1_000;
/** Of a large cluster, so many in a round, in turn: the result is part of every heartbeat. */
const EACH_MAX = 20;

export class Reachability extends Lifecycle {
  readonly #platform: Pick<Platform, "clock" | "identity">;
  readonly #nodes: () => readonly NodeInfo[];
  readonly #probe: Probe;
  readonly #loop: Loop;
  #reach: readonly Reach[] = [];
  #from = 0;

  constructor(
    platform: Pick<Platform, "clock" | "identity">,
    nodes: () => readonly NodeInfo[],
    probe: Probe,
  ) {
    super();
    this.#platform = platform;
    this.#nodes = nodes;
    this.#probe = probe;
    this.#loop = new Loop(platform.clock, async () => {
      this.#reach = await Promise.all(this.#chosen().map((node) => this.#ask(node)));
      return ROUND_MS;
    });
  }

  read(): readonly Reach[] {
    return this.#reach;
  }

  protected override onStart(): void {
    this.#loop.start(ROUND_MS);
  }

  protected override async onStop(): Promise<void> {
    const stopped = this.#loop.stop();
    await this.#probe.close();
    await stopped;
    this.#reach = [];
  }

  #chosen(): readonly NodeInfo[] {
    const { incarnation } = this.#platform.identity;
    const others = this.#nodes().filter((node) => node.incarnation !== incarnation && node.alive);
    if (others.length <= EACH_MAX) return others;
    this.#from = (this.#from + EACH_MAX) % others.length;
    return [...others, ...others].slice(this.#from, this.#from + EACH_MAX);
  }

  async #ask({ name, url }: NodeInfo): Promise<Reach> {
    const { clock } = this.#platform;
    if (url === null) return { node: name, ok: false, latencyMs: null, reason: "it tells no address" };
    const sentAt = clock.monotonic();
    const reason = await this.#probe.ask(`${url.replace(/\/+$/, "")}/livez`, DEADLINE_MS);
    const latencyMs = Math.round((clock.monotonic() - sentAt) * 10) / 10;
    return { node: name, ok: reason === null, latencyMs: reason === null ? latencyMs : null, reason };
  }
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
