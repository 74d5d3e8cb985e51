/** Nodes with a mesh on real sockets, each on an HTTP server of its own. */

import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { NodeName } from "../../src/core/ids.ts";
import type { NodeIdentity } from "../../src/core/node.ts";
import { systemClock, type Clock } from "../../src/platform/clock.ts";
import { systemRandom } from "../../src/platform/random.ts";
import { MeshTransport, type MeshSettings } from "../../src/transport/mesh/mesh-transport.ts";
import type { PeerHandler, Transport } from "../../src/transport/transport.ts";
import { replyOf, type OpenTransport, type Peer, type Received } from "./peer-world.ts";
import { recordingLog, type RecordingLog } from "./node-log.ts";
import { eventually } from "./wait.ts";

export const SECRET = "a secret of the tests, long enough to be one";

export interface MeshNodeOptions extends MeshSettings {
  readonly secrets?: readonly string[];
  readonly clock?: Clock;
  readonly incarnation?: string;
  readonly port?: number;
  /** False: a server without a mesh. */
  readonly mesh?: boolean;
}

export class MeshNode {
  readonly identity: NodeIdentity;
  readonly url: string;
  readonly mesh: MeshTransport;
  readonly server: Server;
  readonly log: RecordingLog["lines"];
  readonly detach: () => Promise<void>;
  readonly #sockets: ReadonlySet<Socket>;

  private constructor(
    made: Pick<MeshNode, "identity" | "url" | "mesh" | "server" | "log" | "detach">,
    sockets: Set<Socket>,
  ) {
    this.identity = made.identity;
    this.url = made.url;
    this.mesh = made.mesh;
    this.server = made.server;
    this.log = made.log;
    this.detach = made.detach;
    this.#sockets = sockets;
  }

  static async start(name: string, handler: PeerHandler, options: MeshNodeOptions = {}): Promise<MeshNode> {
    const { secrets = [SECRET], clock = systemClock, port = 0, mesh: attached = true } = options;
    const identity = { name: name as NodeName, incarnation: options.incarnation ?? systemRandom.uuid() };
    const log = recordingLog();
    const platform = { identity, clock, random: systemRandom, log };
    const mesh = new MeshTransport(platform, secrets, options);
    mesh.serve(handler);
    const server = createServer((_request, response) => void response.writeHead(404).end());
    const sockets = new Set<Socket>();
    server.on("connection", (socket: Socket) => {
      sockets.add(socket);
      socket.once("close", () => sockets.delete(socket));
    });
    server.listen(port, "127.0.0.1");
    await once(server, "listening");
    const detach = attached ? mesh.attach(server) : async () => {};
    await mesh.start();
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    return new MeshNode({ identity, url, mesh, server, log: log.lines, detach }, sockets);
  }

  get name(): NodeName {
    return this.identity.name;
  }

  /** As when the process dies: no goodbye. */
  async kill(): Promise<void> {
    for (const socket of this.#sockets) socket.resetAndDestroy();
    const closing = this.server.listening ? once(this.server, "close") : null;
    this.server.close();
    await closing;
    await this.mesh.stop();
  }
}

/** For the contract. */
export function openMeshTransport(options: MeshNodeOptions = {}): OpenTransport {
  return async () => {
    const caller = await MeshNode.start("caller", async () => ({ status: 404 }));
    const nodes: MeshNode[] = [];
    const names = new Map<string, NodeName>();
    let count = 0;
    const listen = async (handler: PeerHandler, port: number): Promise<MeshNode> => {
      const node = await MeshNode.start(`peer-${count++}`, handler, { ...options, port });
      nodes.push(node);
      names.set(node.url, node.name);
      return node;
    };
    return {
      transport: named(caller.mesh, (url) => names.get(URL.canParse(url) ? new URL(url).origin : url)),
      listen: async (behave, url) => {
        const received: Received[] = [];
        const handler: PeerHandler = async ({ method, path, headers, body }) => {
          const request: Received = { method, path, headers, body };
          received.push(request);
          return replyOf(behave(request));
        };
        const node = await listen(handler, url ? Number(new URL(url).port) : 0);
        const kill = async (): Promise<void> => {
          await node.kill();
          // The news of it takes a turn of the event loop, and until then a call would be written.
          await eventually("the end of the connection", () => !caller.mesh.isConnected(node.name));
        };
        const peer: Peer = { url: node.url, received, kill };
        return peer;
      },
      nowhere: async () => {
        const node = await listen(async () => ({ status: 500 }), 0);
        await node.kill();
        return node.url;
      },
      close: async () => {
        await caller.kill();
        await Promise.all(nodes.map((node) => node.kill()));
      },
    };
  };
}

/** Says whom each call is meant for, as a node does. */
function named(inner: Transport, nameOf: (url: string) => NodeName | undefined): Transport {
  return {
    start: () => inner.start(),
    stop: () => inner.stop(),
    [Symbol.asyncDispose]: () => inner.stop(),
    call: (url, request, options) => inner.call(url, request, { ...options, to: nameOf(url) }),
    stream: (url, request, options) => inner.stream(url, request, { ...options, to: nameOf(url) }),
  };
}
