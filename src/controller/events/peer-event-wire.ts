/** Events among peers, which share no topic: each node is called separately, one after the other. */

import type { NodeName } from "../../core/ids.ts";
import type { NodeInfo } from "../../core/node.ts";
import { servePeers, type PeerClient } from "../../peers/rpc/peer-rpc.ts";
import { Batcher } from "../../platform/batcher.ts";
import type { Platform } from "../../platform/platform.ts";
import { eventMessage, type EventMessage, type EventWire } from "./event-wire.ts";

export interface EventPeers {
  readonly nodes: () => readonly NodeInfo[];
  readonly client: Pick<PeerClient, "ask">;
}

/** A node that takes longer misses what is sent meanwhile. */
const DEADLINE_MS = 2_000;
/** Messages that one slow node may be behind with. */
const UNSENT_MAX = 500;

export function peerEventWire(platform: Pick<Platform, "clock" | "identity" | "log">, peers: EventPeers) {
  const { clock, identity } = platform;
  const lines = new Map<NodeName, Batcher<EventMessage, void>>();
  let handler: ((message: EventMessage) => void) | null = null;

  const others = (): NodeInfo[] =>
    peers.nodes().filter(({ name, alive, url }) => name !== identity.name && alive && url !== null);

  /** What does not arrive is a hole in the numbers. */
  const tell = async (name: NodeName, messages: readonly EventMessage[]): Promise<void[]> => {
    const node = others().find((each) => each.name === name);
    if (node && handler)
      await peers.client.ask(node, "events", { messages: [...messages] }, { deadlineMs: DEADLINE_MS });
    return messages.map(() => {});
  };

  const wire: EventWire = {
    /** Waits for nobody: each node hears as fast as it can. */
    async send(messages) {
      const names = new Set(others().map(({ name }) => name));
      for (const name of lines.keys()) if (!names.has(name)) lines.delete(name);
      for (const name of names) {
        const line = lines.get(name) ?? new Batcher({ clock, flush: (batch) => tell(name, batch) });
        lines.set(name, line);
        if (line.size < UNSENT_MAX) for (const message of messages) void line.add(message);
      }
    },

    hear(given) {
      handler = given;
      return { close: async () => void (handler = null) };
    },
  };
  const handle = servePeers(platform, {
    events: ({ messages }) => {
      for (const message of messages.map(eventMessage)) if (message) handler?.(message);
      return {};
    },
  });
  return { ...wire, handle };
}
