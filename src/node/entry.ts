/**
 * The last layer: how callers and other nodes reach what the layers before have built. Calls of peers are served from here on; until then
 * the transport answers 503.
 */

import { LiveFeed } from "../api/live-feed.ts";
import type { NodeServices } from "../api/services.ts";
import { BacklogReader } from "../cluster/backlog.ts";
import { ClusterView } from "../cluster/cluster-view.ts";
import type { LeaderElections } from "../cluster/leader-elections.ts";
import { Readiness } from "../cluster/readiness.ts";
import { StoreLooks } from "../cluster/store-look.ts";
import { WorkCheck } from "../cluster/work-check.ts";
import { parseAddress } from "../config/address.ts";
import { shownSettings } from "../config/shown-settings.ts";
import { JoinServer } from "../coordination/open.ts";
import { authenticateBy } from "../http/inbound.ts";
import { HttpServer } from "../http/server.ts";
import { FunctionCalls } from "../jobs/functions.ts";
import { observeNode } from "../observe/observe-node.ts";
import { authenticated } from "../transport/authenticator.ts";
import type { PeerHandler } from "../transport/transport.ts";
import { VERSION } from "../version.ts";
import type { PeerBackend } from "./backend-peers.ts";
import type { Backend } from "./backend.ts";
import { accessOf, type AccessEntry } from "./entry-access.ts";
import type { Platform } from "./platform.ts";
import type { Work } from "./work.ts";

/** What a scrape waits for numbers of the store that are old: it is to be answered within 50 ms, whatever the store does. */
const BACKLOG_MS = 25;

export type Entry = ReturnType<typeof entry>;

export function entry(p: Platform, b: Backend, e: LeaderElections, w: Work, listens: boolean) {
  const entrance = accessOf(p, b, e);
  const backlog = new BacklogReader({ store: b.store, clock: p.clock });
  const { journal, services: records } = observeNode(p.events, {
    ...p,
    version: VERSION,
    store: b.store,
    membership: b.membership,
    news: w.news,
  });
  const services = servicesOf(p, b, e, w, { backlog, journal, access: entrance.access });
  const http = listens ? listener(p, b, w, services, entrance) : null;
  const joinServer = b.peers && joinServerOf(p, b.peers, http);
  if (http) {
    b.peers?.transport.serve(http.handle);
    p.state.publish({
      connections: () => http.connections,
      url: () => (http.running ? http.url : null),
    });
  }
  return { services, backlog, records, http, joinServer };
}

/** What the operations of the API work with. */
function servicesOf(
  p: Platform,
  b: Backend,
  e: LeaderElections,
  w: Work,
  built: Pick<NodeServices, "journal"> & Pick<AccessEntry, "access"> & { readonly backlog: BacklogReader },
): NodeServices {
  const { settings, identity, state, tasks, metrics, clock } = p;
  const { store, coordination, membership, channels, peers } = b;
  const { jobs, schedules, inFlight } = w;
  const { backlog, journal, access } = built;
  const { scheduler: leadership } = e;
  const draining = (): boolean => state.draining;
  const forming = (): string | null => state.forming;
  const services: Omit<NodeServices, "live"> = {
    identity,
    version: VERSION,
    startedAt: p.startedAt,
    clock,
    guarantees: store.guarantees,
    roles: p.roles,
    cluster: new ClusterView({
      name: settings.cluster.name,
      minimumNodes: settings.cluster.minimumNodes,
      forming,
      coordination,
      channels,
      dispatch: w.push ? "push" : "pull",
      leadership,
      store,
      events: p.events,
      warnings: peers?.warnings ?? [],
    }),
    functions: new FunctionCalls({
      jobs,
      clock,
      timeoutMs: settings.functions.timeoutMs,
      closing: () => inFlight.closing,
    }),
    jobs,
    queues: w.queues,
    schedules,
    leadership,
    membership,
    health: new Readiness({
      draining,
      forming,
      store,
      coordination,
      leadership,
      trustMs: settings.leader.leaseMs - settings.leader.marginMs,
      clock,
    }),
    tasks,
    controller: w.controller,
    journal,
    insight: new StoreLooks({
      store,
      backlog,
      schedules: () => schedules.list(),
      agentStaleMs: settings.agents.staleAfterMs,
      clock,
    }),
    settings: { list: () => shownSettings(settings) },
    work: new WorkCheck({
      watch: p.watch,
      watchdog: p.watchdog,
      backlog,
      jobs: store.jobs,
      tasks,
      served: p.places,
      slots: p.places.concurrency,
      running: () => w.worker.active,
      state: () => {
        if (state.draining) return "draining";
        return state.forming === null && w.worker.running ? "working" : "starting";
      },
      budgets: p.budgets,
      clock,
    }),
    metrics: {
      contentType: metrics.instruments.contentType,
      async text() {
        await backlog.read(BACKLOG_MS);
        return metrics.instruments.text();
      },
    },
    peers: peers?.peers ?? null,
    placement: w.peers?.placement ?? null,
    access,
  };
  return { ...services, live: new LiveFeed(services, clock) };
}

function listener(
  { settings, tracing, metrics, log, clock }: Platform,
  { peers }: Backend,
  { inFlight, mounts }: Work,
  services: NodeServices,
  entrance: AccessEntry,
): HttpServer {
  const { http, dashboard } = settings;
  return new HttpServer({
    services,
    inFlight,
    access: entrance.access,
    log,
    clock,
    tracing,
    sink: metrics.http,
    host: http.host,
    port: http.port,
    bodyLimitBytes: http.bodyLimitBytes,
    basePath: http.basePath,
    dashboard,
    rateLimit: http.rateLimit,
    trustedProxies: http.trustedProxies,
    secure: http.url.startsWith("https:"),
    ...(peers && {
      authenticate: authenticateBy(peers.authenticator),
      attach: (server) => peers.transport.attach(server),
      mounts: {
        ...mounts,
        ...entrance.mounts,
        "/peer": (request) => peers.coordination.handle(request),
      },
    }),
  });
}

/** A node that joins knows no other address, so calls of nodes are answered there too. */
function joinServerOf(
  { settings, clock, log }: Platform,
  { coordination, authenticator }: PeerBackend,
  http: HttpServer | null,
): JoinServer | null {
  const { addr, user, pass } = settings.manager;
  const address = parseAddress(addr);
  if (!address) return null;
  const handler: PeerHandler = http?.handle ?? (async () => ({ status: 503 }));
  return new JoinServer({
    host: address.host || "0.0.0.0",
    port: address.port,
    user,
    pass,
    coordination,
    peers: authenticated(authenticator, handler),
    clock,
    log,
  });
}
