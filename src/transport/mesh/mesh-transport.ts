/**
 * Calls to peers over WebSockets, on the port that also serves HTTP. Every connection begins with a handshake in which
 * both nodes prove that they know the cluster secret, and everything on it is sealed with keys of that connection. There
 * is no other way to call a peer: a server that does not complete the handshake is sent nothing.
 *
 * Small calls share one connection for each pair of nodes; all of one turn of the event loop leave in one frame. A
 * stream, or a body above 256 KiB, gets a connection of its own (single-call.ts).
 */

import type { Server } from "node:http";
import type { NodeName } from "../../core/ids.ts";
import { Deadline, within } from "../../platform/loop.ts";
import type { Platform } from "../../platform/platform.ts";
import { Lifecycle } from "../../platform/service.ts";
import { Authenticator } from "../signing/authenticator.ts";
import { clusterKeys, type ClusterKeys, type ConnectionUse } from "../signing/signing.ts";
import {
  deadlineOf,
  limitMs,
  mistakeIn,
  peerAddress,
  refused,
  late,
  tooLate,
  unknown,
} from "../call-outcome.ts";
import type {
  CallOptions,
  Failure,
  NodeTransport,
  Outcome,
  PeerHandler,
  PeerReply,
  PeerRequest,
  StreamOptions,
  StreamOutcome,
} from "../transport.ts";
import { wholeBody } from "../stream-body.ts";
import { Acceptor, type Accepted } from "./acceptor.ts";
import { ConnectionTable } from "./connection-table.ts";
import { dial, type Dialled } from "./dial.ts";
import { isLarge } from "./frame.ts";
import type { Session } from "./frame-socket.ts";
import { MeshConnection, type ConnectionLimits, type FetchReply } from "./mesh-connection.ts";
import { requestHeaders } from "./message-content.ts";
import { ParkedReplies, ticketPath } from "./request-server.ts";
import { PeerLink, type Reached } from "./peer-link.ts";
import { SingleCall, SingleServer } from "./single-call.ts";

export type MeshPlatform = Pick<Platform, "identity" | "clock" | "random" | "log">;

export interface MeshSettings {
  /** How far the clocks of two nodes may be apart. */
  readonly skewMs?: number;
  readonly limits?: Partial<ConnectionLimits>;
  readonly connectMs?: number;
  /** Connections of peers for small calls. A cluster needs one for each node; the rest is for those that come and go. */
  readonly connectionsMax?: number;
}

interface Closable {
  close(graceMs: number): Promise<void>;
}

interface Way {
  readonly link: PeerLink;
  readonly connection: MeshConnection | null;
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
/** There may be thousands of connections for a stream, most of them silent: they get less memory and fewer pings. */
const USES = {
  shared: { slabBytes: 256 * 1024, patience: 1 },
  single: { slabBytes: 4 * 1024, patience: 5 },
} as const;
const STOP_MS_MAX = 250;
/** Urls are few; the bound is for those that a node announces by mistake. */
const LINKS_MAX = 1_024;

export class MeshTransport extends Lifecycle implements NodeTransport {
  readonly #platform: MeshPlatform;
  readonly #settings: MeshSettings;
  readonly #keys: ClusterKeys;
  readonly #limits: ConnectionLimits;
  readonly #members: ConnectionTable;
  readonly #parked: ParkedReplies;
  /** Connections for a single call, in both directions. */
  readonly #singles = new Set<Closable>();
  readonly #acceptor: Acceptor;
  readonly #accepted = new Map<Server, Set<Closable>>();
  readonly #links = new Map<string, PeerLink>();
  #stopping = new AbortController();
  #handler: PeerHandler = async () => NOT_SERVING;

  constructor(platform: MeshPlatform, secrets: readonly string[], settings: MeshSettings = {}) {
    super();
    this.#platform = platform;
    this.#settings = settings;
    this.#keys = clusterKeys(secrets);
    this.#limits = { ...LIMITS, ...settings.limits };
    this.#members = new ConnectionTable(platform.identity.name);
    this.#parked = new ParkedReplies(platform);
    this.#acceptor = new Acceptor({
      ...platform,
      keys: this.#keys,
      authenticator: new Authenticator(platform, this.#keys, settings),
      closed: (use) => this.#closed(use),
      onConnection: (accepted) => this.#accept(accepted),
    });
  }

  serve(handler: PeerHandler): void {
    this.#handler = handler;
  }

  /** The returned function also closes the connections that came in there: a server that closes waits for them. */
  attach(server: Server): () => Promise<void> {
    const accepted = new Set<Closable>();
    this.#accepted.set(server, accepted);
    const detach = this.#acceptor.attach(server);
    return async () => {
      detach();
      this.#accepted.delete(server);
      await Promise.all([...accepted].map((connection) => connection.close(STOP_MS_MAX)));
    };
  }

  get connections(): number {
    return this.#members.size;
  }

  isConnected(name: NodeName): boolean {
    return this.#members.get(name) !== null;
  }

  watch(peerUrl: string, signal: AbortSignal, name: NodeName | null = null): AsyncIterable<void> {
    const link = this.#link(peerUrl);
    if ("outcome" in link) throw new Error(link.reason);
    const both = AbortSignal.any([signal, this.#stopping.signal]);
    return link.watch(this.#platform, name, () => this.#current(link, name), both);
  }

  call(peerUrl: string, request: PeerRequest, options: CallOptions): Promise<Outcome> {
    const way = this.#way(peerUrl, request, options);
    if ("outcome" in way) return Promise.resolve(way);
    const { connection, link } = way;
    if (isLarge(request.body ?? "")) return this.#callAlone(link, request, options);
    const fetch: FetchReply = (ticket, left) => {
      return this.#callAlone(link, { method: "GET", path: ticketPath(ticket) }, left);
    };
    if (connection) return connection.call(request, options, fetch);
    return this.#reach(link, options, link.reach(options.to ?? null)).then((reached) => {
      if ("outcome" in reached) return reached;
      return reached.connection.call(request, { ...options, deadlineMs: reached.leftMs }, fetch);
    });
  }

  stream(peerUrl: string, request: PeerRequest, options: StreamOptions): Promise<StreamOutcome> {
    const way = this.#way(peerUrl, request, options);
    if ("outcome" in way) return Promise.resolve(way);
    return this.#streamAlone(way.link, request, options, deadlineOf(request, options));
  }

  protected override onStart(): void {
    this.#stopping = new AbortController();
  }

  protected override async onStop(): Promise<void> {
    this.#stopping.abort();
    const open = [...this.#members.all(), ...this.#singles];
    await Promise.all(open.map((connection) => connection.close(STOP_MS_MAX)));
    this.#links.clear();
    this.#parked.clear();
  }

  // ---------------------------------------------------------------- the way to a peer

  #way(peerUrl: string, request: PeerRequest, options: CallOptions | StreamOptions): Way | Failure {
    if (!this.running) return refused("the transport is not running");
    const link = this.#link(peerUrl);
    if ("outcome" in link) return link;
    const mistake = mistakeIn(request, options);
    return mistake ?? { link, connection: this.#current(link, options.to ?? null) };
  }

  /** Two spellings of one url have one link. */
  #link(peerUrl: string): PeerLink | Failure {
    const known = this.#links.get(peerUrl);
    if (known) return known;
    const url = peerAddress(peerUrl);
    if (typeof url !== "string") return url;
    if (this.#links.size >= LINKS_MAX) this.#links.clear();
    const link = this.#links.get(url) ?? new PeerLink(url, (to) => this.#connect(url, to));
    this.#links.set(url, link).set(peerUrl, link);
    return link;
  }

  #current(link: PeerLink, to: NodeName | null): MeshConnection | null {
    const name = to ?? link.name;
    return name === null ? null : this.#members.get(name);
  }

  /** What an attempt found, within the time of the call. Nothing of the call was sent yet, so every failure is a refusal. */
  async #reach<Found extends Reached | Dialled>(
    { url }: PeerLink,
    options: CallOptions | StreamOptions,
    attempt: Promise<Found>,
  ): Promise<(Extract<Found, { state: "open" }> & { readonly leftMs: number }) | Failure> {
    const { clock } = this.#platform;
    const limit = limitMs(options);
    const began = clock.monotonic();
    const found = await within(clock, limit, attempt, options.signal);
    if (!found)
      return refused(options.signal?.aborted ? "it was called off before it was sent" : tooLate(options));
    if (!this.running) return refused("the transport was stopped");
    const leftMs = limit - (clock.monotonic() - began);
    if (leftMs <= 0) return refused(tooLate(options));
    if (found.state === "open") return { ...(found as Extract<Found, { state: "open" }>), leftMs };
    const failure = refused(`${url}: ${found.reason}`);
    return found.state === "denied" ? { ...failure, denied: found.reason } : failure;
  }

  // ---------------------------------------------------------------- connections

  async #dial(
    url: string,
    to: NodeName | null,
    use: ConnectionUse,
    connectMs = this.#settings.connectMs ?? 2_000,
  ): Promise<Dialled> {
    const { identity: self, clock, random } = this.#platform;
    const claims = { from: self, to, time: clock.now(), nonce: random.uuid(), use };
    const { signal } = this.#stopping;
    const dialled = await dial(clock, url, this.#keys, claims, connectMs, signal);
    if (dialled.state !== "open" || (!signal.aborted && dialled.peer.name !== self.name)) return dialled;
    dialled.socket.terminate();
    const reason = signal.aborted ? "the transport was stopped" : "this is the node itself";
    return { state: "denied", reason };
  }

  async #connect(url: string, to: NodeName | null): Promise<Reached> {
    const dialled = await this.#dial(url, to, "shared");
    if (dialled.state !== "open") return dialled;
    const connection = this.#share(this.#session(dialled, true, "shared"));
    this.#members.prove(connection);
    // The peer may have dialled this node in the same moment, and that connection is kept.
    return { state: "open", connection: this.#members.get(connection.peer.name) ?? connection };
  }

  #closed(use: ConnectionUse): string | null {
    if (!this.running) return "the node is not running";
    const { connectionsMax = 512 } = this.#settings;
    const full =
      use === "shared" ? this.#members.size >= connectionsMax : this.#singles.size >= this.#limits.callsMax;
    return full ? "the node has too many connections" : null;
  }

  #accept(accepted: Accepted): void {
    const session = this.#session(accepted, false, accepted.use);
    const all = this.#accepted.get(accepted.server);
    if (accepted.use === "shared") {
      const connection = this.#share(session);
      all?.add(connection);
      void connection.over.then(() => all?.delete(connection));
      return;
    }
    const handler: PeerHandler = async (request) =>
      this.#parked.take(session.peer.name, request.path) ?? this.#handler(request);
    const single: SingleServer = new SingleServer(session, handler, this.#limits.bodyBytesMax, () => {
      all?.delete(single);
      this.#singles.delete(single);
    });
    all?.add(single);
    this.#singles.add(single);
  }

  #share(session: Session): MeshConnection {
    const handler: PeerHandler = (request) => this.#handler(request);
    const connection = new MeshConnection(session, handler, this.#parked, this.#limits, {
      onProven: (proven) => this.#members.prove(proven),
      onOver: (gone) => this.#members.remove(gone),
    });
    this.#members.add(connection);
    return connection;
  }

  #session(
    { socket, peer, session }: Pick<Accepted, "socket" | "peer" | "session">,
    dialled: boolean,
    use: ConnectionUse,
  ): Session {
    const { clock, log } = this.#platform;
    const { slabBytes, patience } = USES[use];
    const pingMs = patience * this.#limits.pingMs;
    const silentMs = patience * this.#limits.silentMs;
    return { socket, peer, keys: session, dialled, clock, log, pingMs, silentMs, slabBytes };
  }

  // ---------------------------------------------------------------- calls on connections of their own

  async #streamAlone(
    link: PeerLink,
    request: PeerRequest,
    options: StreamOptions,
    deadlineMs: number | null,
  ): Promise<StreamOutcome> {
    const headers = requestHeaders(request);
    if (typeof headers !== "string") return headers;
    // Many streams may begin at once, so only the limit of the call itself counts.
    const dialled = this.#dial(link.url, options.to ?? null, "single", options.headMs);
    const reached = await this.#reach(link, options, dialled);
    if ("outcome" in reached) return reached;
    const call: SingleCall = new SingleCall(
      this.#session(reached, true, "single"),
      { ...request, headers, deadlineMs },
      { ...options, headMs: reached.leftMs },
      () => this.#singles.delete(call),
    );
    this.#singles.add(call);
    return call.outcome;
  }

  async #callAlone(link: PeerLink, request: PeerRequest, options: CallOptions): Promise<Outcome> {
    const { to, deadlineMs, signal } = options;
    using deadline = new Deadline(this.#platform.clock, deadlineMs, ...(signal ? [signal] : []));
    try {
      const head = { headMs: deadlineMs, to, signal: deadline.signal };
      const reply = await this.#streamAlone(link, request, head, deadlineOf(request, options));
      if (reply.outcome !== "reply") return reply;
      return { ...reply, body: await wholeBody(reply.body, this.#limits.bodyBytesMax) };
    } catch (error) {
      return deadline.expired ? late(options) : unknown((error as Error).message);
    }
  }
}
