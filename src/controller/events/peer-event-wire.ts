/** Events among peers, which share no topic: each node is called separately, one after the other. */

import type { NodeName } from "../../core/ids.ts";
import type { NodeInfo } from "../../core/node.ts";
import { servePeers, type PeerClient } from "../../peers/rpc/peer-rpc.ts";
import { Batcher } from "../../platform/batcher.ts";
import type { Platform } from "../../platform/platform.ts";
import type { PeerHandler } from "../../transport/transport.ts";
import { eventMessage, type EventMessage, type EventWire } from "./event-wire.ts";

export interface EventPeers {
  readonly nodes: () => readonly NodeInfo[];
  readonly client: Pick<PeerClient, "ask">;
}

/** A node that takes longer misses what is sent meanwhile. */
const DEADLINE_MS = 2_000;
/** Messages that one slow node may be behind with. */
const UNSENT_MAX = 500;

export class PeerEventWire implements EventWire {
  readonly #platform: Pick<Platform, "clock" | "identity">;
  readonly #peers: EventPeers;
  readonly #lines = new Map<NodeName, Batcher<EventMessage, void>>();
  #handler: ((message: EventMessage) => void) | null = null;
  readonly handle: PeerHandler;

  constructor(platform: Pick<Platform, "clock" | "identity" | "log">, peers: EventPeers) {
    this.#platform = platform;
    this.#peers = peers;
    this.handle = servePeers(platform, {
      events: ({ messages }) => {
        for (const message of messages.map(eventMessage)) if (message) this.#handler?.(message);
        return {};
      },
    });
  }

  /** Waits for nobody: each node hears as fast as it can. */
  async send(messages: readonly EventMessage[]): Promise<void> {
    const { clock } = this.#platform;
    const others = new Set(this.#others().map(({ name }) => name));
    for (const name of this.#lines.keys()) if (!others.has(name)) this.#lines.delete(name);
    for (const name of others) {
      const flush = (batch: readonly EventMessage[]): Promise<void[]> => this.#tell(name, batch);
      const line = this.#lines.get(name) ?? new Batcher({ clock, flush });
      this.#lines.set(name, line);
      if (line.size < UNSENT_MAX) for (const message of messages) void line.add(message);
    }
  }

  hear(handler: (message: EventMessage) => void): { close(): Promise<void> } {
    this.#handler = handler;
    return { close: async () => void (this.#handler = null) };
  }

  /** What does not arrive is a hole in the numbers. */
  async #tell(name: NodeName, messages: readonly EventMessage[]): Promise<void[]> {
    const node = this.#others().find((each) => each.name === name);
    if (node && this.#handler)
      await this.#peers.client.ask(node, "events", { messages: [...messages] }, { deadlineMs: DEADLINE_MS });
    return messages.map(() => {});
  }

  #others(): NodeInfo[] {
    const self = this.#platform.identity.name;
    return this.#peers.nodes().filter(({ name, alive, url }) => name !== self && alive && url !== null);
  }
}
