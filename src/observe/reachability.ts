/**
 * Checks whether this node can reach the others at the addresses that they report. The result is for people: the leader
 * decides which nodes are dead. A node that is alive but unreachable from some others is a network error that nothing
 * else would show.
 */

import type { NodeIdentity, NodeInfo, Reach } from "../core/node.ts";
import type { Clock } from "../platform/clock.ts";
import type { Probe } from "../platform/http-probe.ts";
import { Lifecycle } from "../platform/service.ts";

export interface ReachabilityOptions {
  readonly self: NodeIdentity;
  readonly nodes: () => readonly NodeInfo[];
  readonly probe: Probe;
  readonly clock: Clock;
}

const ROUND_MS = 5_000;
const DEADLINE_MS = 1_000;
/** Of a large cluster, so many in a round, in turn: what is told travels with every heartbeat. */
const EACH_MAX = 20;

export class Reachability extends Lifecycle {
  readonly #o: ReachabilityOptions;
  #reach: readonly Reach[] = [];
  #from = 0;
  #stopping = new AbortController();
  #looking: Promise<void> = Promise.resolve();

  constructor(options: ReachabilityOptions) {
    super();
    this.#o = options;
  }

  /** As it was last tried; empty for a node that is alone. */
  read(): readonly Reach[] {
    return this.#reach;
  }

  protected override onStart(): void {
    this.#stopping = new AbortController();
    this.#looking = this.#look(this.#stopping.signal);
  }

  protected override async onStop(): Promise<void> {
    this.#stopping.abort();
    await this.#o.probe.close();
    await this.#looking;
    this.#reach = [];
  }

  async #look(stopping: AbortSignal): Promise<void> {
    const { clock } = this.#o;
    while (!stopping.aborted) {
      await clock.sleep(ROUND_MS, stopping);
      if (stopping.aborted) return;
      const reach = await Promise.all(this.#chosen().map((node) => this.#ask(node)));
      this.#reach = reach;
    }
  }

  #chosen(): readonly NodeInfo[] {
    const { nodes, self } = this.#o;
    const others = nodes().filter((node) => node.incarnation !== self.incarnation && node.alive);
    if (others.length <= EACH_MAX) return others;
    this.#from = (this.#from + EACH_MAX) % others.length;
    return [...others, ...others].slice(this.#from, this.#from + EACH_MAX);
  }

  async #ask({ name, url }: NodeInfo): Promise<Reach> {
    const { clock, probe } = this.#o;
    if (url === null) return { node: name, ok: false, latencyMs: null, reason: "it tells no address" };
    const sentAt = clock.monotonic();
    const reason = await probe.ask(`${url.replace(/\/+$/, "")}/livez`, DEADLINE_MS);
    const latencyMs = Math.round((clock.monotonic() - sentAt) * 10) / 10;
    return { node: name, ok: reason === null, latencyMs: reason === null ? latencyMs : null, reason };
  }
}
