/** Two worlds for the transport contract: peers on real sockets, and peers in memory. They misbehave in the same ways. */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { pipeline, Readable } from "node:stream";
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
  /** What reached it, in order. */
  readonly received: readonly Received[];
  kill(): Promise<void>;
}

export interface TransportWorld {
  readonly transport: Transport;
  /** At an url of its own, or at one that nobody uses. */
  readonly listen: (behave: (request: Received) => Behaviour, url?: string) => Promise<Peer>;
  /** Where nobody listens. */
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

export function withTransport(
  open: OpenTransport,
): (proof: (world: TransportWorld) => Promise<void>) => Promise<void> {
  return async (proof) => {
    const world = await open();
    try {
      await proof(world);
    } finally {
      await world.close();
    }
  };
}

/** Wraps the transport of a world, to break it. */
export function tampered(open: OpenTransport, tamper: (inner: Transport) => Transport): OpenTransport {
  return async () => {
    const world = await open();
    return { ...world, transport: tamper(world.transport) };
  };
}

/** What a handler makes of a behaviour. */
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

// ---------------------------------------------------------------- memory

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

// ---------------------------------------------------------------- http

/** Opens a transport over HTTP against servers on free ports. */
export function openHttpTransport(make: () => Transport): OpenTransport {
  return async () => {
    const transport = make();
    await transport.start();
    const peers: Peer[] = [];
    return {
      transport,
      listen: async (behave, url) => {
        const peer = await servePeer(behave, url ? Number(new URL(url).port) : 0);
        peers.push(peer);
        return peer;
      },
      nowhere: async () => {
        // A port that was free a moment ago.
        const peer = await servePeer(() => "dies", 0);
        await peer.kill();
        return peer.url;
      },
      close: async () => {
        await transport.stop();
        await Promise.all(peers.map((peer) => peer.kill()));
      },
    };
  };
}

async function servePeer(behave: (request: Received) => Behaviour, port: number): Promise<Peer> {
  const received: Received[] = [];
  const server = createServer((request, response) => {
    void readAll(request).then(
      (body) => {
        const { method = "", url = "", headers } = request;
        const one: Received = { method, path: url, headers, body };
        received.push(one);
        act(behave(one), response);
      },
      () => response.destroy(),
    );
  });
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, received, kill: () => killServer(server) };
}

async function killServer(server: Server): Promise<void> {
  if (!server.listening) return;
  server.closeAllConnections();
  server.close();
  await once(server, "close");
}

async function readAll(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString("utf8");
}

function act(behaviour: Behaviour, response: ServerResponse): void {
  if (typeof behaviour === "object" && behaviour.stream) {
    response.writeHead(behaviour.status, behaviour.headers);
    pipeline(Readable.from(behaviour.stream), response, () => {});
    return;
  }
  if (typeof behaviour === "object") {
    const { status, headers = {}, body = "" } = behaviour;
    response.writeHead(
      status,
      status === 204 || status === 304 ? headers : { ...headers, "content-length": Buffer.byteLength(body) },
    );
    response.end(body);
    return;
  }
  switch (behaviour) {
    case "dies":
      response.destroy();
      return;
    case "breaks off":
      response.writeHead(200, { "content-length": 1_000 });
      response.write("the first part", () => response.destroy());
      return;
    case "drips": {
      response.writeHead(200);
      const drip = (): void => {
        if (response.destroyed) return;
        response.write(".");
        void systemClock.sleep(5).then(drip);
      };
      drip();
      return;
    }
    case "is silent":
  }
}
