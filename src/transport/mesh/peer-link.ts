/** The link to one url: dials on demand, one attempt at a time, and reports losses of the connection. */

import type { NodeName } from "../../core/ids.ts";
import { Backoff, within } from "../../platform/loop.ts";
import type { Platform } from "../../platform/platform.ts";
import type { Dialled } from "./dial.ts";
import type { MeshConnection } from "./mesh-connection.ts";

export type Reached =
  | { readonly state: "open"; readonly connection: MeshConnection }
  | Exclude<Dialled, { state: "open" }>;

const BACK_OFF_MS = 100;
const BACK_OFF_MS_MAX = 5_000;

export class PeerLink {
  readonly url: string;
  readonly #dial: (to: NodeName | null) => Promise<Reached>;
  #dialling: { readonly to: NodeName | null; readonly reached: Promise<Reached> } | null = null;
  /** The node that answered there last. */
  name: NodeName | null = null;

  constructor(url: string, dial: (to: NodeName | null) => Promise<Reached>) {
    this.url = url;
    this.#dial = dial;
  }

  /** Concurrent callers share one attempt, unless they mean different nodes. */
  async reach(to: NodeName | null): Promise<Reached> {
    const dialling = this.#dialling;
    if (dialling && (dialling.to === to || to === null)) return dialling.reached;
    const mine = { to, reached: this.#dial(to) };
    this.#dialling = mine;
    try {
      const result = await mine.reached;
      if (result.state === "open") this.name = result.connection.peer.name;
      return result;
    } finally {
      if (this.#dialling === mine) this.#dialling = null;
    }
  }

  async *watch(
    { clock, random }: Pick<Platform, "clock" | "random">,
    name: NodeName | null,
    current: () => MeshConnection | null,
    signal: AbortSignal,
  ): AsyncGenerator<void, void, void> {
    const backoff = new Backoff(BACK_OFF_MS, BACK_OFF_MS_MAX);
    while (!signal.aborted) {
      const connection = current();
      if (connection) {
        backoff.reset();
        await within(clock, Infinity, connection.over, signal);
        // Another connection to the same peer may have taken over: then nothing is lost.
        if (!signal.aborted && !current()) yield;
        continue;
      }
      const reached = await within(clock, Infinity, this.reach(name), signal);
      // A connection that was accepted and cut at once does not count.
      if (reached?.state === "open" && current()) continue;
      await clock.sleep(backoff.next() * (0.5 + random.chance() / 2), signal);
    }
  }
}
