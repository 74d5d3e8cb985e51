/**
 * Accepts connections of peers on an existing HTTP server. A client without a valid signature gets a plain HTTP answer
 * and occupies no resources.
 */

import type { IncomingMessage, Server } from "node:http";
import type { Duplex } from "node:stream";
import { WebSocketServer, type WebSocket } from "ws";
import type { NodeIdentity } from "../../core/node.ts";
import type { Platform } from "../../platform/platform.ts";
import type { Authenticator } from "../signing/authenticator.ts";
import type { ClusterKeys, ConnectionUse } from "../signing/signing.ts";
import { FRAME_BYTES_MAX } from "./frame.ts";
import { MESH_PATH, REFUSAL_HEADER, welcome, type SessionKeys } from "./handshake.ts";

interface AcceptorOptions extends Pick<Platform, "identity" | "random"> {
  readonly keys: ClusterKeys;
  readonly authenticator: Authenticator;
  /** The reason why no connection of this use is accepted now; null while they are. */
  readonly closed: (use: ConnectionUse) => string | null;
  readonly onConnection: (accepted: Accepted) => void;
}

export interface Accepted {
  readonly socket: WebSocket;
  readonly peer: NodeIdentity;
  readonly session: SessionKeys;
  readonly use: ConnectionUse;
  readonly server: Server;
}

export class Acceptor {
  readonly #o: AcceptorOptions;
  readonly #headers = new WeakMap<IncomingMessage, Readonly<Record<string, string>>>();
  readonly #sockets = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: FRAME_BYTES_MAX,
  });

  constructor(options: AcceptorOptions) {
    this.#o = options;
    this.#sockets.on("headers", (lines, request) => {
      for (const [name, value] of Object.entries(this.#headers.get(request) ?? {}))
        lines.push(`${name}: ${value}`);
    });
  }

  attach(server: Server): () => void {
    const onUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
      if (isMesh(request)) this.#upgrade(server, request, socket, head);
      else if (server.listenerCount("upgrade") === 1) socket.destroy();
    };
    server.on("upgrade", onUpgrade);
    // Without this a server with a listener for upgrades no longer answers requests that only offer one, as curl --http2 does.
    const before = Reflect.get(server, "shouldUpgradeCallback") as unknown;
    Reflect.set(
      server,
      "shouldUpgradeCallback",
      (request: IncomingMessage) => isMesh(request) || server.listenerCount("upgrade") > 1,
    );
    return () => {
      server.off("upgrade", onUpgrade);
      Reflect.set(server, "shouldUpgradeCallback", before);
    };
  }

  #upgrade(server: Server, request: IncomingMessage, socket: Duplex, head: Buffer): void {
    // Node has taken its own listener away, and an error without one would end the process.
    socket.on("error", () => socket.destroy());
    const { identity: self, random, keys, authenticator } = this.#o;
    const verdict = authenticator.check(request.headers);
    if (verdict.verdict === "refused") return answer(socket, "401 Unauthorized", verdict.reason);
    const { claims, keyId } = verdict;
    const { from, use } = claims;
    const reason = this.#o.closed(use);
    if (reason !== null) return answer(socket, "503 Service Unavailable", reason);
    if (from.name === self.name) {
      const why =
        from.incarnation === self.incarnation
          ? "this is the node itself"
          : `${self.name} is the name of this node`;
      return answer(socket, "401 Unauthorized", why);
    }
    const { headers, session } = welcome(keys, self, random.uuid(), claims, keyId);
    this.#headers.set(request, headers);
    this.#sockets.handleUpgrade(request, socket, head, (opened) => {
      this.#o.onConnection({ socket: opened, peer: from, session, use, server });
    });
  }
}

function isMesh({ url, headers }: IncomingMessage): boolean {
  // The url of a node may have a path in front.
  return url?.endsWith(MESH_PATH) === true && headers.upgrade?.toLowerCase() === "websocket";
}

function answer(socket: Duplex, status: string, reason: string): void {
  const text = reason.replaceAll(/[^\x20-\x7e]/g, "?");
  const body = JSON.stringify({ error: "UNAUTHENTICATED", message: text });
  // A client that does not read the answer must not keep the socket.
  socket.once("finish", () => socket.destroy());
  socket.end(
    `HTTP/1.1 ${status}\r\n${REFUSAL_HEADER}: ${text}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
  );
}
