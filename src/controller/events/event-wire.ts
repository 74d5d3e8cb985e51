/**
 * The messages by which nodes exchange events. Every message may be lost; receivers notice that by the numbers.
 *
 *   wanted   a node has a reader of events; without it for a while, nothing is sent
 *   raised   from any node to the leader: this happened here
 *   told     from the leader to all: this happened, and these are the numbers
 */

import type { Channels, Subscription } from "../../channels/channels.ts";
import { topics } from "../../channels/channel-names.ts";
import type { Happened } from "./event-log.ts";

export type EventMessage =
  | { readonly say: "wanted" }
  | {
      readonly say: "raised";
      /** A life of a node, and how many messages of this kind it has sent since somebody reads; from 1. */
      readonly from: string;
      readonly seq: number;
      readonly events: readonly Happened[];
    }
  | {
      readonly say: "told";
      readonly epoch: number;
      readonly first: number;
      readonly events: readonly Happened[];
    };

export interface EventWire {
  /** To all other nodes, in this order. */
  send(messages: readonly EventMessage[]): Promise<void>;
  hear(handler: (message: EventMessage) => void): Subscription;
}

/** Over a topic, where nodes have one in common. */
export function channelEventWire(channels: Pick<Channels, "publish" | "subscribe">): EventWire {
  return {
    send: (messages) =>
      channels.publish(
        topics.events,
        messages.map((body) => ({ key: "", body })),
      ),
    hear: (handler) =>
      channels.subscribe(topics.events, ({ body }) => {
        const message = eventMessage(body);
        if (message) handler(message);
      }),
  };
}

/** Null for what is none, or is one of a newer version. */
export function eventMessage(body: unknown): EventMessage | null {
  const { say, from, seq, epoch, first, events } = (body ?? {}) as Partial<Record<string, unknown>>;
  if (say === "wanted") return { say };
  if (!Array.isArray(events) || !events.every(isHappened)) return null;
  if (say === "raised" && typeof from === "string" && isCount(seq)) return { say, from, seq, events };
  return say === "told" && isCount(epoch) && isCount(first) ? { say, epoch, first, events } : null;
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function isHappened(value: unknown): value is Happened {
  const { event, data } = (value ?? {}) as Partial<Happened>;
  return typeof event === "string" && typeof data === "object" && data !== null;
}
