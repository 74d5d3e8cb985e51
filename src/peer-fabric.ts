/**
 * What a node of a cluster of peers has beside the parts of every node: the way to the others, the coordination that they are
 * together, the round in which new jobs are placed, and schedules that are noted by a majority.
 */

import type { Server } from "node:http";
import { join } from "node:path";
import type { Jobs, Peers, Placement } from "./api/services.ts";
import { EVENTS_PATH, PeerEventWire } from "./cluster/peer-event-wire.ts";
import { agreedToken } from "./access/token-text.ts";
import { Position } from "./cluster/placement-position.ts";
import { Rounds } from "./cluster/placement-rounds.ts";
import { RoundRobinPlacement } from "./cluster/placement.ts";
import { ReplicatedSchedules } from "./cluster/replicated-schedules.ts";
import { SCHEDULE_PATH } from "./cluster/replicated-schedules-wire.ts";
import { KeptRetractedJobs } from "./cluster/retracted-jobs.ts";
import { Retractions, RETRACTIONS_PATH } from "./cluster/retractions.ts";
import { isEverywhere, parseAddress } from "./config/address.ts";
import { discoverNodes, parseDiscovery } from "./config/discovery.ts";
import { openClusterSecret } from "./config/secret.ts";
import type { Settings } from "./config/settings.ts";
import type { Leadership } from "./coordination/coordination.ts";
import {
  JoinServer,
  openPeers as openPeerCoordination,
  type JoinServerOptions,
  type PeerSource,
} from "./coordination/open.ts";
import type { NodeName } from "./core/ids.ts";
import type { NodeIdentity, NodeInfo, OwnInfo } from "./core/node.ts";
import { inTurn, willing } from "./core/round-robin.ts";
import { authenticateBy } from "./http/inbound.ts";
import type { HttpServer } from "./http/server.ts";
import type { Clock } from "./platform/clock.ts";
import type { Log } from "./platform/log.ts";
import type { NodeEvents } from "./platform/node-events.ts";
import type { Random } from "./platform/random.ts";
import type { Service } from "./platform/service.ts";
import type { Store, TermStore } from "./store/store.ts";
import { authenticated } from "./transport/authenticator.ts";
import { openPeers } from "./transport/open.ts";
import type { Outcome, PeerHandler, PeerRequest } from "./transport/transport.ts";

export interface PeerFabricOptions {
  readonly settings: Settings;
  readonly identity: NodeIdentity;
  readonly info: () => OwnInfo;
  readonly store: Store;
  readonly terms: TermStore;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly events: NodeEvents;
  readonly draining: () => boolean;
  /** Built later, of what is made here. */
  readonly later: {
    readonly http: () => HttpServer | null;
    readonly jobs: () => Pick<Jobs, "cancel" | "remove">;
    readonly leadership: () => Leadership;
    readonly wakeWorker: () => void;
  };
}

export type PeerFabric = ReturnType<typeof openPeerFabric>;

export function openPeerFabric(options: PeerFabricOptions) {
  const { settings, identity, info, store, terms, clock, random, log, events, draining, later } = options;
  const secret = openClusterSecret(settings)!;
  const handler: PeerHandler = async (request) => {
    const http = later.http();
    return http ? http.handle(request) : { status: 503 };
  };
  const { transport, authenticator } = openPeers({
    self: identity,
    secrets: secret.secrets,
    handler,
    clock,
    random,
    log,
  });

  const coordination = openPeerCoordination({
    identity,
    info,
    manager: () => managerAddress(settings, info()),
    clock,
    random,
    log,
    transport,
    watchPeer: (address, signal, name) => transport.watch(address, signal, name),
    dir: settings.data,
    terms,
    source: peerSource(settings, () => info().httpPort ?? settings.http.port),
    settings: {
      quorum: settings.cluster.quorum,
      order: settings.cluster.order,
      heartbeatMs: settings.peers.healthIntervalMs,
      heartbeatTimeoutMs: settings.peers.heartbeatTimeoutMs,
      electionTimeoutMs: settings.peers.electionTimeoutMs,
      forgetAfterMs: settings.peers.forgetAfterMs,
      deadAfterMs: settings.node.deadAfterMs,
      leaseMs: settings.leader.leaseMs,
    },
  });
  const joinServer = joinServerOf(settings, {
    coordination,
    peers: authenticated(authenticator, handler),
    clock,
    log,
  });

  const nodes = (): readonly NodeInfo[] => coordination.membership.nodes();
  const call = (node: NodeInfo, request: PeerRequest, deadlineMs: number): Promise<Outcome> =>
    transport.call(node.url!, request, { deadlineMs, to: node.name });
  const peers: Peers = {
    requestTimeoutMs: settings.peers.requestTimeoutMs,
    configHash: () => coordination.configHash ?? "",
    agreed: () => coordination.agreed,
    call: (url, request, rest) => transport.call(url, request, rest),
    stream: (url, request, rest) => transport.stream(url, request, rest),
  };
  const leadership: Pick<Leadership, "current" | "held" | "require"> = {
    current: () => later.leadership().current(),
    held: () => later.leadership().held(),
    require: () => later.leadership().require(),
  };

  const { strategy, stateFile } = settings.placement;
  const position = new Position({
    file: stateFile === "" ? join(settings.data, "placement.json") : stateFile,
    clock,
    random,
    log,
  });
  const rounds = new Rounds({ strategy, position, leadership, nodes, call, clock });
  const retracted = new KeptRetractedJobs({
    node: identity.name,
    jobs: {
      cancel: (id, reason) => later.jobs().cancel(id, reason),
      remove: (id) => later.jobs().remove(id),
    },
    clock,
    log,
  });
  const retractions = new Retractions({
    self: identity.name,
    file: join(settings.data, "retractions"),
    nodes,
    call,
    retracted,
    clock,
    log,
  });
  const placement: Placement = new RoundRobinPlacement({
    self: identity.name,
    strategy,
    rounds,
    peers,
    nodes,
    draining,
    retractions,
    retracted,
    clock,
    random,
    log,
  });

  /** Also those that nobody has heard of yet: they are among those whose majority counts. */
  const voters = (): readonly NodeInfo[] => {
    const known = new Map(nodes().map((node) => [node.name, node]));
    return coordination
      .voters()
      .map((name) => known.get(name) ?? unheardOf(name, coordination.address(name)));
  };
  const schedules = new ReplicatedSchedules({
    self: identity.name,
    voters,
    call: (node, request, rest) => transport.call(node.url!, request, { ...rest, to: node.name }),
    ...(settings.cluster.quorum === "none" && { required: () => 1 }),
    store,
    leadership,
    targets: ({ task }) =>
      inTurn(willing(nodes(), { role: "worker", tasks: [task] }), position.next()).map(({ name }) => name),
    accepts: () => !draining(),
    onPlaced: () => later.wakeWorker(),
    events,
    clock,
    log,
  });

  const eventWire = new PeerEventWire({ self: identity.name, nodes, call });
  const mounts: Readonly<Record<string, PeerHandler>> = {
    [EVENTS_PATH]: (request) => eventWire.handle(request),
    "/peer/placement": (request) => rounds.handle(request),
    [RETRACTIONS_PATH]: (request) => retractions.handle(request),
    [SCHEDULE_PATH]: (request) => schedules.handle(request),
    "/peer": (request) => coordination.handle(request),
  };
  return {
    coordination,
    peers,
    placement,
    schedules,
    eventWire,
    nodes,
    call,
    /** What all nodes make of their secret; null where everybody knows that. */
    firstToken: secret.from === "nothing" ? null : agreedToken(secret.secrets[0]!),
    warnings: secret.warnings,
    /** How the listener knows its peers. */
    listener: {
      authenticate: authenticateBy(authenticator),
      mounts,
      attach: (server: Server) => transport.attach(server),
    },
    /** In the order in which they are started: before the listener, and when peers can be reached. */
    before: [transport, position] as readonly Service[],
    after: (joinServer ? [joinServer, retractions] : [retractions]) as readonly Service[],
    /** What peers have taken back from this node while it was away. */
    settle: () => retractions.collect(),
    goDown: () => joinServer?.goDown(),
  };
}

function peerSource(settings: Settings, ownPort: () => number): PeerSource {
  const { nodes, join: addresses, discover, cluster } = settings;
  if (Object.keys(nodes).length > 0) return { kind: "static", nodes };
  const discovery = discover === "" ? null : parseDiscovery(discover);
  if (!discovery) return { kind: "join", addresses: addresses.map((address) => `http://${address}`) };
  const resolve = () => discoverNodes(discovery, ownPort());
  return { kind: "discover", resolve, expect: cluster.minimumNodes };
}

function joinServerOf(
  { manager }: Settings,
  rest: Omit<JoinServerOptions, "host" | "port" | "user" | "pass">,
): JoinServer | null {
  const address = parseAddress(manager.addr);
  const { user, pass } = manager;
  return (
    address && new JoinServer({ host: address.host || "0.0.0.0", port: address.port, user, pass, ...rest })
  );
}

/** As others reach it: of one that listens everywhere, at the address of the node. */
function managerAddress({ manager }: Settings, { address }: Pick<OwnInfo, "address">): string | null {
  const own = parseAddress(manager.addr);
  if (!own || !isEverywhere(own.host)) return own && manager.addr;
  return address && `${address.includes(":") ? `[${address}]` : address}:${own.port}`;
}

function unheardOf(name: NodeName, url: string | null): NodeInfo {
  return {
    name,
    incarnation: "",
    url,
    hostname: "",
    address: null,
    httpPort: null,
    roles: [],
    capabilities: [],
    version: "",
    status: "joining",
    startedAt: 0,
    lastSeenAt: 0,
    alive: false,
    load: { jobs: 0, connections: 0, cpu: 0, memory: 0, loopLagMs: 0 },
  };
}
