/**
 * Several nodes in one process, each with its own jobs: the real API, over a mesh on real sockets or in memory.
 */

import { mkdtemp, rm } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { FastifyInstance } from "fastify";
import { peerRequestHandler, type PeerRequestHandler } from "../../src/api/peer-request-handler.ts";
import { liveFeed } from "../../src/api/live-feed.ts";
import type { NodeServices } from "../../src/api/node-services.ts";
import type { Peers } from "../../src/transport/hop-headers.ts";
import { InFlight } from "../../src/platform/in-flight.ts";
import { RoundRobinPosition } from "../../src/peers/placement/round-robin-position.ts";
import { PlacementRounds } from "../../src/peers/placement/placement-rounds.ts";
import type { PlacementStrategy } from "../../src/peers/placement/placement-rounds.ts";
import { RoundRobinPlacement } from "../../src/peers/placement/round-robin-placement.ts";
import { PeerClient } from "../../src/peers/rpc/peer-rpc.ts";
import { RetractionFile } from "../../src/peers/retractions/retraction-file.ts";
import { Retractions } from "../../src/peers/retractions/retractions.ts";
import type { NodeName } from "../../src/core/ids.ts";
import type { NodeInfo } from "../../src/core/node.ts";
import type { Term } from "../../src/core/leadership/term.ts";
import { buildApp } from "../../src/http/app.ts";
import { systemClock } from "../../src/platform/clock.ts";
import type { Clock } from "../../src/platform/clock.ts";
import { systemFiles } from "../../src/platform/files.ts";
import { openTelemetry } from "../../src/platform/tracing.ts";
import { NodeState } from "../../src/platform/node-state.ts";
import { systemRandom } from "../../src/platform/random.ts";
import { fakePlatform } from "./fake-platform.ts";
import { seededRandom } from "./seeded-random.ts";
import { MeshTransport } from "../../src/transport/mesh/mesh-transport.ts";
import { MemoryNetwork } from "./memory-network.ts";
import type { PeerHandler, PeerRequest, Transport } from "../../src/transport/transport.ts";
import { executorOf, FakeNode, keptLog, loopbackOnly } from "../unit/http/fake-node.ts";
import { SECRET } from "./mesh-world.ts";

export interface PeerApp {
  readonly name: NodeName;
  readonly url: string;
  readonly node: FakeNode;
  readonly app: FastifyInstance;
  readonly requests: PeerRequestHandler;
  readonly log: ReturnType<typeof keptLog>;
  readonly placement: RoundRobinPlacement;
  readonly retractionFile: RetractionFile;
  readonly retractions: Retractions;
  readonly inFlight: InFlight;
  readonly sent: { readonly to: string; readonly request: PeerRequest }[];
  /** Ends the listener as a death would. */
  kill(): Promise<void>;
}

export interface PeerApps extends AsyncDisposable {
  readonly nodes: readonly PeerApp[];
  readonly network: MemoryNetwork | null;
  /** What everybody thinks of a node, on top of what it is. */
  see(name: string, change: Partial<NodeInfo>): void;
  lead(name: string | null): void;
}

export interface PeerAppsOptions {
  readonly names: readonly string[];
  readonly way?: "mesh" | "memory";
  readonly strategy?: PlacementStrategy;
  readonly requestTimeoutMs?: number;
  readonly clock?: Clock;
  /** Beside the nodes, in everybody's view. */
  readonly others?: readonly { readonly name: string; readonly url: string | null }[];
  /** Comes before what a node does with a call of another one, in memory only. */
  readonly meddle?: (name: string, handle: PeerHandler) => PeerHandler;
  readonly configHash?: (name: string) => string;
  /** Of a node, if not the same as that of the others. */
  readonly secretOf?: (name: string) => string;
  readonly view?: (name: string, nodes: readonly NodeInfo[]) => readonly NodeInfo[];
}

export async function peerApps(options: PeerAppsOptions): Promise<PeerApps> {
  const { names, way = "mesh", clock = systemClock } = options;
  const dir = await mkdtemp(join(tmpdir(), "baton-peers-"));
  const network = way === "memory" ? new MemoryNetwork(clock) : null;
  const changes = new Map<string, Partial<NodeInfo>>();
  let leader: string | null = names[0] ?? null;
  const tracing = openTelemetry("0.0.0-test");
  const term = (): Term | null =>
    leader === null ? null : { role: "scheduler", leader: leader as NodeName, incarnation: "i", epoch: 7 };
  const nodes: PeerApp[] = [];
  const closing: (() => Promise<unknown>)[] = [];
  const view = (name: string): readonly NodeInfo[] => {
    const known = nodes.map((each) => ({ ...each.node.membership.nodes()[0]!, url: each.url }));
    const beside = (options.others ?? []).map((other) => ({
      ...known[0]!,
      name: other.name as NodeName,
      url: other.url,
    }));
    const all = [...known, ...beside].sort((a, b) => (a.name < b.name ? -1 : 1));
    const seen = all.map((each): NodeInfo => ({ ...each, ...changes.get(each.name) }));
    return options.view?.(name, seen) ?? seen;
  };

  const add = async (name: string, index: number): Promise<void> => {
    const node = new FakeNode(name as NodeName);
    node.seed(index + 1);
    const log = keptLog();
    const inFlight = new InFlight(clock);
    const sent: PeerApp["sent"] = [];
    let url = `http://${name}:8420`;
    const identity = { name: name as NodeName, incarnation: systemRandom.uuid() };
    const secrets = [options.secretOf?.(name) ?? SECRET];
    const mesh = new MeshTransport({ identity, clock, random: systemRandom, log }, secrets, {
      connectMs: 1_000,
    });
    const transport: Transport = network ? network.transport(url) : mesh;
    await transport.start();
    const noted = (to: string, request: PeerRequest): PeerRequest => {
      sent.push({ to, request });
      return request;
    };
    const peers: Peers = {
      requestTimeoutMs: options.requestTimeoutMs ?? 2_000,
      configHash: () => options.configHash?.(name) ?? "same",
      agreed: () => true,
      call: (to, request, rest) => transport.call(to, noted(to, request), rest),
      stream: (to, request, rest) => transport.stream(to, noted(to, request), rest),
    };
    const client = new PeerClient(peers.call);
    const self = name as NodeName;
    const random = seededRandom(100 + index);
    const { health } = node;
    const platform = {
      ...fakePlatform({ name, clock, random, log, files: systemFiles }),
      identity,
      // The fake node says whether it drains.
      state: Object.defineProperty(new NodeState(), "draining", { get: () => health.draining }),
    };
    const leadership = {
      ...node.leadership,
      current: term,
      held: () => (leader === name ? term() : null),
    };
    const nodesSeen = () => view(name);
    const { strategy = "global" } = options;
    const position = new RoundRobinPosition(platform, null);
    const rounds = new PlacementRounds({
      ...platform,
      strategy,
      position,
      leadership,
      client,
      nodes: nodesSeen,
    });
    const retractionFile = new RetractionFile(platform, join(dir, `${name}.retractions`));
    const retractions = new Retractions(platform, retractionFile, client, nodesSeen, node.jobs);
    await retractionFile.start();
    await retractions.start();
    const placement = new RoundRobinPlacement(platform, {
      strategy,
      rounds,
      peers,
      nodes: nodesSeen,
      retractions,
    });
    const services: NodeServices = Object.assign(Object.create(node) as NodeServices, {
      clock,
      leadership,
      membership: { ...node.membership, nodes: () => view(name) },
      cluster: { ...node.cluster, nodes: () => view(name) },
      peers,
      placement,
    });
    Object.assign(services, { live: liveFeed(services) });
    const mounts = {
      "/peer/placement": rounds.handle,
      "/peer/retractions": retractions.handle,
    };
    const limits = { host: "127.0.0.1", bodyLimitBytes: 1_048_576, access: loopbackOnly() };
    const executor = executorOf(services, inFlight, tracing);
    const requests = peerRequestHandler({ clock, log }, { executor, mounts });
    const app = await buildApp({ clock, log }, { executor, ...limits, peers: requests });
    let kill: () => Promise<void>;
    if (network) {
      const { handle } = requests;
      const end = network.listen(url, options.meddle?.(name, handle) ?? handle);
      kill = async () => end();
    } else {
      mesh.serve(requests.handle);
      const detach = mesh.attach(app.server);
      await app.listen({ host: "127.0.0.1", port: 0 });
      url = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
      kill = async () => {
        await detach();
        app.server.closeAllConnections();
        await new Promise<void>((resolve) => app.server.close(() => resolve()));
      };
    }
    closing.push(async () => {
      await kill();
      await retractions.stop();
      await retractionFile.stop();
      await transport.stop();
      await app.close();
    });
    nodes.push({
      name: self,
      url,
      node,
      app,
      requests,
      log,
      placement,
      retractionFile,
      retractions,
      inFlight,
      sent,
      kill,
    });
  };

  try {
    for (const [index, name] of names.entries()) await add(name, index);
  } catch (error) {
    await Promise.allSettled(closing.map((close) => close()));
    throw error;
  }
  return {
    nodes,
    network,
    see: (name, change) => void changes.set(name, { ...changes.get(name), ...change }),
    lead: (name) => void (leader = name),
    async [Symbol.asyncDispose]() {
      await Promise.allSettled(closing.map((close) => close()));
      await rm(dir, { recursive: true, force: true });
    },
  };
}
