/**
 * Calls to peers over one WebSocket for each pair of nodes, on the port that also serves HTTP.
 *
 * All calls of one turn of the event loop are sent in one sealed frame; a call costs a third of an HTTP request. If a
 * peer has no mesh (an older version, a proxy in between), calls use the fallback transport.
 */

import type { Server } from "node:http";
import type { WebSocket } from "ws";
import type { NodeName } from "../../core/ids.ts";
import type { NodeIdentity } from "../../core/node.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Log } from "../../platform/log.ts";
import type { Random } from "../../platform/random.ts";
import { Lifecycle } from "../../platform/service.ts";
import type { Authenticator } from "../signing/authenticator.ts";
import type { ClusterKeys } from "../signing/cluster-keys.ts";
import { limitMs, mistakeIn, peerAddress, refused, tooLate } from "../outcome.ts";
import type { PeerAddress } from "../outcome.ts";
import { deadlineOf } from "../signing/signed-transport.ts";
import type {
  CallOptions,
  Failure,
  Outcome,
  PeerHandler,
  PeerReply,
  PeerRequest,
  StreamOptions,
  StreamOutcome,
  Transport,
} from "../transport.ts";
import { Acceptor } from "./acceptor.ts";
import { MeshConnection } from "./mesh-connection.ts";
import type { ConnectionLimits } from "./mesh-connection.ts";
import { dial } from "./dial.ts";
import type { SessionKeys } from "./handshake.ts";
import { PeerLink } from "./peer-link.ts";
import type { Reached } from "./peer-link.ts";
import { ConnectionTable } from "./connection-table.ts";
import { watchPeer } from "./watch-peer.ts";
import type { PeerBreak } from "./watch-peer.ts";

export interface MeshOptions {
  readonly self: NodeIdentity;
  readonly keys: ClusterKeys;
  readonly authenticator: Authenticator;
  /** For peers without a mesh; it signs by itself. Started and stopped with the mesh. */
  readonly fallback: Transport;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly limits?: Partial<ConnectionLimits>;
  readonly connectMs?: number;
  readonly plainMs?: number;
  /** Connections of peers. A cluster needs one for each node; the rest is for those that come and go. */
  readonly connectionsMax?: number;
}

const LIMITS: ConnectionLimits = {
  pingMs: 1_000,
  silentMs: 4_000,
  bodyBytesMax: 64 * 1024 * 1024,
  callsMax: 4_096,
};
const NOT_SERVING: PeerReply = {
  status: 503,
  headers: { "content-type": "application/json", "retry-after": "1" },
  body: JSON.stringify({ error: "STOPPED", message: "this node does not serve calls of nodes yet" }),
};
const STOP_MS_MAX = 250;
/** Urls are few; the bound is for those that somebody announces by mistake. */
const LINKS_MAX = 1_024;

export class MeshTransport extends Lifecycle implements Transport {
  readonly kind = "mesh";
  readonly #o: MeshOptions;
  readonly #limits: ConnectionLimits;
  readonly #members: ConnectionTable;
  readonly #acceptor: Acceptor;
  readonly #accepted = new Map<Server, Set<MeshConnection>>();
  readonly #links = new Map<string, PeerLink>();
  readonly #addresses = new Map<string, PeerAddress>();
  #stopping = new AbortController();
  #handler: PeerHandler = async () => NOT_SERVING;

  constructor(options: MeshOptions) {
    super();
    this.#o = options;
    this.#limits = { ...LIMITS, ...options.limits };
    this.#members = new ConnectionTable(options.self.name);
    const { self, keys, authenticator, random, connectionsMax = 512 } = options;
    this.#acceptor = new Acceptor({
      self,
      keys,
      authenticator,
      random,
      closed: () => {
        if (!this.running) return "the node is not running";
        return this.#members.size >= connectionsMax ? "the node has too many connections" : null;
      },
      onConnection: ({ socket, peer, session, server }) => {
        const connection = this.#open(socket, peer, session, false);
        const accepted = this.#accepted.get(server);
        accepted?.add(connection);
        void connection.over.then(() => accepted?.delete(connection));
      },
    });
  }

  /** The calls of peers go to this handler from now on; before, they are answered with 503. */
  serve(handler: PeerHandler): void {
    this.#handler = handler;
  }

  /**
   * Takes connections of peers there from now on. The returned function ends that, and says goodbye to those that came in there: a
   * server that closes waits for them. The transport goes on, and dials when it has to.
   */
  attach(server: Server): () => Promise<void> {
    const accepted = new Set<MeshConnection>();
    this.#accepted.set(server, accepted);
    const detach = this.#acceptor.attach(server);
    return async () => {
      detach();
      this.#accepted.delete(server);
      await Promise.all([...accepted].map((connection) => connection.close(STOP_MS_MAX)));
    };
  }

  /** Open connections, also those that are about to be replaced. */
  get connections(): number {
    return this.#members.size;
  }

  /** Whether this node can be called without dialling. */
  isConnected(name: NodeName): boolean {
    return this.#members.get(name) !== null;
  }

  /** Keeps a connection open and tells when it is not there. Nothing comes of a peer without a mesh. */
  watch(peerUrl: string, signal: AbortSignal, name: NodeName | null = null): AsyncIterable<PeerBreak> {
    const address = this.#address(peerUrl);
    if ("outcome" in address) throw new Error(address.reason);
    const link = this.#link(address);
    const current = (): MeshConnection | null => this.#current(link, name);
    const { clock, random } = this.#o;
    const both = AbortSignal.any([signal, this.#stopping.signal]);
    return watchPeer({ link, name, current, clock, random }, both);
  }

  call(peerUrl: string, request: PeerRequest, options: CallOptions): Promise<Outcome> {
    const way = this.#way(peerUrl, request, options);
    if ("outcome" in way) return Promise.resolve(way);
    const { connection, path } = way;
    if (connection) return connection.call(request, path, deadlineOf(request, options), options);
    return this.#reach(way.link, options).then((reached) => {
      if ("outcome" in reached) return reached;
      const left = { ...options, deadlineMs: reached.leftMs };
      if (!reached.connection) return this.#o.fallback.call(peerUrl, request, left);
      return reached.connection.call(request, path, deadlineOf(request, left), left);
    });
  }

  stream(peerUrl: string, request: PeerRequest, options: StreamOptions): Promise<StreamOutcome> {
    const way = this.#way(peerUrl, request, options);
    if ("outcome" in way) return Promise.resolve(way);
    const { connection, path } = way;
    if (connection) return connection.stream(request, path, deadlineOf(request, options), options);
    return this.#reach(way.link, options).then((reached) => {
      if ("outcome" in reached) return reached;
      const left = { ...options, headMs: reached.leftMs };
      if (!reached.connection) return this.#o.fallback.stream(peerUrl, request, left);
      return reached.connection.stream(request, path, deadlineOf(request, left), left);
    });
  }

  protected override async onStart(): Promise<void> {
    this.#stopping = new AbortController();
    await this.#o.fallback.start();
  }

  protected override async onStop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all([
      ...this.#members.all().map((connection) => connection.close(STOP_MS_MAX)),
      this.#o.fallback.stop(),
    ]);
    this.#links.clear();
  }

  // ---------------------------------------------------------------- the way to a peer

  #way(
    peerUrl: string,
    request: PeerRequest,
    options: CallOptions | StreamOptions,
  ):
    | { readonly link: PeerLink; readonly connection: MeshConnection | null; readonly path: string }
    | Failure {
    if (!this.running) return refused("the transport is not running");
    const address = this.#address(peerUrl);
    if ("outcome" in address) return address;
    const mistake = mistakeIn(request, options);
    if (mistake) return mistake;
    const link = this.#link(address);
    const connection = this.#current(link, options.to ?? null);
    return { link, connection, path: address.base === "" ? request.path : address.base + request.path };
  }

  #address(peerUrl: string): PeerAddress | Failure {
    const known = this.#addresses.get(peerUrl);
    if (known) return known;
    const address = peerAddress(peerUrl);
    if ("outcome" in address) return address;
    if (this.#addresses.size >= LINKS_MAX) this.#addresses.clear();
    this.#addresses.set(peerUrl, address);
    return address;
  }

  #link({ origin, base }: PeerAddress): PeerLink {
    const url = origin + base;
    const known = this.#links.get(url);
    if (known) return known;
    const { clock, log, plainMs = 60_000 } = this.#o;
    const link = new PeerLink({
      url,
      clock,
      plainMs,
      dial: (of, to) => this.#dial(of, to),
      onPlain: ({ url: peer }, reason) =>
        log.warn({ peer, reason }, "a peer has no mesh; it is called over HTTP, which costs more"),
    });
    if (this.#links.size >= LINKS_MAX) this.#links.clear();
    this.#links.set(url, link);
    return link;
  }

  #current(link: PeerLink, to: NodeName | null): MeshConnection | null {
    const name = to ?? link.name;
    return name === null ? null : this.#members.get(name);
  }

  /** Until now nothing of the call was written, so whatever goes wrong here is a refusal. */
  async #reach(
    link: PeerLink,
    options: CallOptions | StreamOptions,
  ): Promise<{ readonly connection: MeshConnection | null; readonly leftMs: number } | Failure> {
    const { clock } = this.#o;
    const limit = limitMs(options);
    if (link.plain) return { connection: null, leftMs: limit };
    const began = clock.monotonic();
    const reached = await this.#patiently(link.reach(options.to ?? null), options);
    if ("outcome" in reached) return reached;
    if (!this.running) return refused("the transport was stopped");
    const leftMs = limit - (clock.monotonic() - began);
    if (leftMs <= 0) return refused(tooLate(options));
    switch (reached.state) {
      case "open":
        return { connection: reached.connection, leftMs };
      case "plain":
      case "cut":
        return { connection: null, leftMs };
      case "refusing":
      case "silent":
        return refused(`${link.url}: ${reached.reason}`);
      case "denied":
        return { ...refused(`${link.url}: ${reached.reason}`), denied: reached.reason };
    }
  }

  async #patiently(
    reaching: Promise<Reached>,
    options: CallOptions | StreamOptions,
  ): Promise<Reached | Failure> {
    const { promise, resolve } = Promise.withResolvers<Reached | Failure>();
    const cancel = this.#o.clock.after(limitMs(options), () => resolve(refused(tooLate(options))));
    const abort = (): void => resolve(refused("it was called off before it was sent"));
    options.signal?.addEventListener("abort", abort, { once: true });
    reaching.then(resolve, (error: unknown) => resolve(refused(String(error))));
    const result = await promise;
    cancel();
    options.signal?.removeEventListener("abort", abort);
    return result;
  }

  async #dial(link: PeerLink, to: NodeName | null): Promise<Reached> {
    const { self, keys, clock, random, connectMs = 2_000 } = this.#o;
    const claims = {
      from: self,
      to,
      time: clock.now(),
      nonce: random.uuid(),
      deadlineMs: null,
      hop: 0,
    };
    const { signal } = this.#stopping;
    const dialled = await dial({ url: link.url, keys, claims, clock, connectMs, signal });
    if (dialled.state !== "open") return dialled;
    const { socket, peer, session } = dialled;
    if (signal.aborted || peer.name === self.name) {
      socket.terminate();
      return {
        state: "denied",
        reason: signal.aborted ? "the transport was stopped" : "this is the node itself",
      };
    }
    return { state: "open", connection: this.#open(socket, peer, session, true) };
  }

  #open(socket: WebSocket, peer: NodeIdentity, session: SessionKeys, dialled: boolean): MeshConnection {
    const { clock, log } = this.#o;
    const connection = new MeshConnection({
      socket,
      peer,
      dialled,
      session,
      handler: (request) => this.#handler(request),
      clock,
      log,
      limits: this.#limits,
      onProven: (proven) => this.#members.prove(proven),
      onOver: (gone) => this.#members.remove(gone),
    });
    this.#members.add(connection);
    if (!dialled) return connection;
    this.#members.prove(connection);
    // The peer may have dialled us in the same moment, and that one is kept.
    return this.#members.get(peer.name) ?? connection;
  }
}
