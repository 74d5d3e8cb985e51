/** The last layer: how callers and other nodes reach the services. Until it is built, the transport answers peers with 503. */

import { operationExecutor, type OperationExecutor } from "../api/execute.ts";
import { liveFeed } from "../api/live-feed.ts";
import type { NodeServices } from "../api/node-services.ts";
import { peerRequestHandler } from "../api/peer-request-handler.ts";
import { clusterView } from "../observe/cluster-view.ts";
import { join } from "node:path";
import { Access } from "../access/access.ts";
import { credentialReplicas } from "../access/credential-replicas.ts";
import { Credentials } from "../access/credentials.ts";
import { firstToken } from "../access/first-token.ts";
import { asksCallers } from "../config/checks.ts";
import { ADMIN_TOKEN_FILE } from "../config/secrets/secret-file.ts";
import { PEER_ROUTES } from "../peers/rpc/peer-routes.ts";
import type { LeaderElections } from "../leadership/leader-elections.ts";
import { readiness } from "../observe/readiness.ts";
import { type Backlog, backlogOf, storeSnapshots } from "../observe/store-snapshots.ts";
import { workerHealthCheck } from "../observe/worker-health-check.ts";
import { parseAddress } from "../config/values/address.ts";
import { shownSettings } from "../config/load-settings.ts";
import type { JoinServer } from "../peers/open-peers.ts";
import type { HttpServer, HttpServerOptions } from "../http/http-server.ts";
import { MountedHttp } from "../http/mounted-http.ts";
import { functionCalls } from "../jobs/submit/function-calls.ts";
import { observeNode } from "../observe/observe-node.ts";
import type { Cached } from "../platform/cached.ts";
import { VERSION } from "../platform/version.ts";
import type { PeerBackend } from "./backend-peers.ts";
import type { Backend } from "./backend.ts";
import type { NodePlatform } from "./platform.ts";
import type { Work } from "./work.ts";

/** What a scrape waits for numbers of the store that are old: it is to be answered within 50 ms, whatever the store does. */
const BACKLOG_MS = 25;

export async function entry(p: NodePlatform, b: Backend, e: LeaderElections, w: Work, listens: boolean) {
  const { access, replicas } = accessOf(p, b, e);
  const backlog = backlogOf(p, b.store);
  const { journal, services: records } = observeNode(p.events, {
    ...p,
    version: VERSION,
    store: b.store,
    membership: b.membership,
    news: w.news,
  });
  const services = servicesOf(p, b, e, w, { backlog, journal, access });
  const executor = operationExecutor(p, { services, inFlight: w.inFlight, tracing: p.tracing });
  const requests =
    b.peers &&
    peerRequestHandler(p, {
      executor,
      mounts: {
        ...w.mounts,
        ...(replicas && { [PEER_ROUTES.credentials.path]: replicas.handle }),
        "/peer": b.peers.coordination.handle.bind(b.peers.coordination),
      },
    });
  const http = listens ? await listener(p, b, { executor, access, peers: requests }) : null;
  const mounted = mountedHttp(p, executor);
  const joinServer = b.peers && (await joinServerOf(p, b.peers));
  if (requests) b.peers!.transport.serve(requests.handle);
  if (http) {
    p.state.publish({
      connections: () => http.connections,
      url: () => (http.running ? http.url : null),
    });
  }
  return { services, executor, backlog, records, http, mounted, joinServer };
}

function accessOf(p: NodePlatform, b: Backend, { scheduler }: LeaderElections) {
  const { settings } = p;
  const { store, peers } = b;
  const credentials = new Credentials(p, store.access, store.guarantees.shared);
  const replicas = peers && credentialReplicas(p, credentials, peers);
  const open = !asksCallers(settings);
  const { token: fixedToken } = settings.access;
  const file = store.guarantees.keepsTokenFile ? join(settings.data, ADMIN_TOKEN_FILE) : null;
  const agreement = replicas && {
    agreed: peers.firstToken,
    leads: () => scheduler.held() !== null,
    settled: () => replicas.hasHeard(scheduler.current()?.leader ?? ""),
  };
  const first = open || fixedToken !== "" ? null : firstToken(p, credentials, file, agreement);
  return { access: new Access(p, { credentials, open, fixedToken, firstToken: first, replicas }), replicas };
}

function servicesOf(
  p: NodePlatform,
  b: Backend,
  e: LeaderElections,
  w: Work,
  { backlog, ...built }: Pick<NodeServices, "journal" | "access"> & { readonly backlog: Cached<Backlog> },
): NodeServices {
  const { settings, identity, tasks, metrics, clock } = p;
  const { store, coordination, membership, channels, peers } = b;
  const { jobs, schedules, inFlight } = w;
  const { scheduler: leadership } = e;
  const services: Omit<NodeServices, "live"> = {
    identity,
    version: VERSION,
    startedAt: p.startedAt,
    clock,
    guarantees: store.guarantees,
    roles: p.roles,
    cluster: clusterView(p, {
      name: settings.cluster.name,
      minimumNodes: settings.cluster.minimumNodes,
      coordination,
      channels,
      dispatch: w.push ? "push" : "pull",
      leadership,
      store,
      warnings: peers?.warnings ?? [],
    }),
    functions: functionCalls(p, jobs, settings.functions.timeoutMs, () => inFlight.closing, w.knownTasks),
    jobs,
    queues: w.queues,
    schedules,
    leadership,
    membership,
    health: readiness(p, store, coordination, leadership, settings.leader.leaseMs - settings.leader.marginMs),
    tasks,
    controller: w.controller,
    insight: storeSnapshots(p, store, backlog, () => schedules.list(), settings.agents.staleAfterMs),
    settings: { list: () => shownSettings(settings) },
    work: workerHealthCheck(p, {
      ...p,
      backlog,
      jobs: store.jobs,
      served: p.places,
      slots: p.places.concurrency,
      worker: w.worker,
    }),
    metrics: {
      contentType: metrics.instruments.contentType,
      async text() {
        await backlog.get(BACKLOG_MS);
        return metrics.instruments.text();
      },
    },
    peers: peers?.peers ?? null,
    placement: w.peers?.placement ?? null,
    ...built,
  };
  return { ...services, live: liveFeed(services) };
}

/** A node without a listener does not load Fastify. */
async function listener(
  p: NodePlatform,
  { peers }: Backend,
  options: Pick<HttpServerOptions, "executor" | "access" | "peers">,
): Promise<HttpServer> {
  const { HttpServer } = await import("../http/http-server.ts");
  const { http, dashboard } = p.settings;
  return new HttpServer(p, {
    ...http,
    ...options,
    sink: p.metrics.http,
    dashboard,
    secure: http.url.startsWith("https:"),
    ...(peers && { attach: (server) => peers.transport.attach(server) }),
  });
}

/** For a server of the program around this node. */
function mountedHttp(p: NodePlatform, executor: OperationExecutor): MountedHttp {
  const { http, dashboard, access } = p.settings;
  const { bodyLimitBytes, rateLimit } = http;
  const { required } = access;
  return new MountedHttp(p, {
    executor,
    bodyLimitBytes,
    rateLimit,
    required,
    dashboard,
    sink: p.metrics.http,
  });
}

/** A node that joins knows no other address, so connections of nodes are accepted there too. */
async function joinServerOf(
  p: NodePlatform,
  { coordination, transport }: PeerBackend,
): Promise<JoinServer | null> {
  const { manager } = p.settings;
  const address = parseAddress(manager.addr);
  if (!address) return null;
  const { JoinServer } = await import("../peers/open-peers.ts");
  return new JoinServer(p, {
    host: address.host || "0.0.0.0",
    port: address.port,
    user: manager.user,
    pass: manager.pass,
    coordination,
    attach: (server) => transport.attach(server),
  });
}
