/** Events among peers, which share no topic: each node is called separately, one after the other. */

import type { NodeName } from "../../core/ids.ts";
import type { NodeInfo } from "../../core/node.ts";
import { servePeers, type PeerClient } from "../../peers/rpc/peer-rpc.ts";
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

interface Line {
  unsent: EventMessage[];
  sending: boolean;
}

export class PeerEventWire implements EventWire {
  readonly #self: NodeName;
  readonly #peers: EventPeers;
  readonly #lines = new Map<NodeName, Line>();
  #handler: ((message: EventMessage) => void) | null = null;
  readonly handle: PeerHandler;

  constructor(platform: Pick<Platform, "identity" | "log">, peers: EventPeers) {
    this.#self = platform.identity.name;
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
    const others = this.#peers
      .nodes()
      .filter(({ name, alive, url }) => name !== this.#self && alive && url !== null);
    const names = new Set(others.map(({ name }) => name));
    for (const name of this.#lines.keys()) if (!names.has(name)) this.#lines.delete(name);
    for (const { name } of others) {
      const line = this.#lines.get(name) ?? { unsent: [], sending: false };
      this.#lines.set(name, line);
      line.unsent = line.unsent.length > UNSENT_MAX ? [...messages] : [...line.unsent, ...messages];
      if (!line.sending) void this.#work(name, line);
    }
  }

  hear(handler: (message: EventMessage) => void): { close(): Promise<void> } {
    this.#handler = handler;
    return {
      close: async () => {
        this.#handler = null;
        this.#lines.clear();
      },
    };
  }

  async #work(name: NodeName, line: Line): Promise<void> {
    line.sending = true;
    while (line.unsent.length > 0 && this.#lines.get(name) === line) {
      const messages = line.unsent;
      line.unsent = [];
      const node = this.#peers.nodes().find((each) => each.name === name);
      if (!node?.alive || node.url === null) break;
      // What does not arrive is a hole in the numbers.
      await this.#peers.client.ask(node, "events", { messages }, { deadlineMs: DEADLINE_MS });
    }
    line.sending = false;
  }
}
