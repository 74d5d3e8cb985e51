/** The world of the transport contract: peers that misbehave. */

import { systemClock } from "../../src/platform/clock.ts";
import { MemoryNetwork } from "./memory-network.ts";
import type { PeerReply, Transport } from "../../src/transport/transport.ts";
import { eventually } from "./wait.ts";

export interface Received {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: string;
}

/**
 * - `dies`: the connection breaks before the first byte of a reply.
 * - `breaks off`: it breaks in the middle of the body.
 * - `drips`: the reply begins, and goes on for ever.
 * - `is silent`: nothing comes.
 */
export type Behaviour = PeerReply | "dies" | "breaks off" | "drips" | "is silent";

export interface Peer {
  readonly url: string;
  readonly received: readonly Received[];
  kill(): Promise<void>;
}

export interface TransportWorld {
  readonly transport: Transport;
  /** At an url of its own, or at one that nobody uses. */
  readonly listen: (behave: (request: Received) => Behaviour, url?: string) => Promise<Peer>;
  readonly nowhere: () => Promise<string>;
  readonly close: () => Promise<void>;
}

/** Waits until so many requests have reached the peer, and not for ever. */
export async function reached(peer: Peer, count: number): Promise<void> {
  await eventually(`${count} requests`, () => peer.received.length >= count, 5_000);
}

export async function* flowing(chunks: readonly Buffer[]): AsyncGenerator<Buffer> {
  for (const chunk of chunks) yield chunk;
}

export type OpenTransport = () => Promise<TransportWorld>;

export function replyOf(behaviour: Behaviour): Promise<PeerReply> | PeerReply {
  if (typeof behaviour === "object") return behaviour;
  switch (behaviour) {
    case "dies":
      throw new Error(behaviour);
    case "breaks off":
      return { status: 200, stream: breakingOff() };
    case "drips":
      return { status: 200, stream: dripping() };
    case "is silent":
      return new Promise<PeerReply>(() => {});
  }
}

async function* breakingOff(): AsyncGenerator<Buffer> {
  yield Buffer.from("the first part");
  throw new Error("breaks off");
}

async function* dripping(): AsyncGenerator<Buffer> {
  for (;;) {
    yield Buffer.from(".");
    await systemClock.sleep(5);
  }
}

export const openMemoryTransport: OpenTransport = async () => {
  const network = new MemoryNetwork(systemClock);
  const transport = network.transport("http://caller:1");
  await transport.start();
  let port = 1_000;
  const fresh = (): string => `http://peer:${++port}`;
  return {
    transport,
    listen: async (behave, url = fresh()) => {
      const received: Received[] = [];
      const close = network.listen(url, async ({ method, path, headers, body }) => {
        const request: Received = { method, path, headers, body };
        received.push(request);
        return replyOf(behave(request));
      });
      return { url, received, kill: async () => close() };
    },
    nowhere: async () => fresh(),
    close: () => transport.stop(),
  };
};
