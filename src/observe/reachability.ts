/**
 * Checks whether this node can reach the others at the addresses that they report. The result is for people: the leader
 * decides which nodes are dead. A node that is alive but unreachable from some others is a network error that nothing
 * else would show.
 */

import type { NodeInfo, Reach } from "../core/node.ts";
import type { Probe } from "../platform/http-probe.ts";
import { Loop } from "../platform/loop.ts";
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

  /** As it was last tried; empty for a node that is alone. */
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
