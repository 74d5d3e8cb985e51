/**
 * The additional work of a node in a cluster of peers: places new jobs on the nodes in turn, takes back jobs that were
 * placed twice, and stores schedules on a majority.
 */

import { join } from "node:path";
import type { LeaderElections } from "../leadership/leader-elections.ts";
import { RoundRobinPosition } from "../peers/placement/round-robin-position.ts";
import { PlacementRounds } from "../peers/placement/placement-rounds.ts";
import { RoundRobinPlacement } from "../peers/placement/round-robin-placement.ts";
import { ReplicatedSchedules } from "../peers/schedules/replicated-schedules.ts";
import { SCHEDULE_PATH } from "../peers/schedules/schedule-messages.ts";
import { RetractionReceiver } from "../peers/retractions/retraction-receiver.ts";
import { Retractions, RETRACTIONS_PATH } from "../peers/retractions/retractions.ts";
import type { NodeName } from "../core/ids.ts";
import type { NodeInfo } from "../core/node.ts";
import { inTurn, willing } from "../core/placement-rules.ts";
import type { Jobs } from "../jobs/job-service.ts";
import type { Store } from "../store/store.ts";
import type { PeerHandler } from "../transport/transport.ts";
import type { PeerBackend } from "./backend-peers.ts";
import type { NodePlatform } from "./platform.ts";

export type PeerWork = ReturnType<typeof peerWork>;

export function peerWork(
  { settings, identity, state, events, signal, clock, random, log }: NodePlatform,
  { transport, coordination, peers, nodes, call }: PeerBackend,
  { scheduler: leadership }: LeaderElections,
  { store, jobs }: { readonly store: Store; readonly jobs: Pick<Jobs, "cancel" | "remove"> },
) {
  const { name: self } = identity;
  const { strategy, stateFile } = settings.placement;
  const file = stateFile === "" ? join(settings.data, "placement.json") : stateFile;
  const position = new RoundRobinPosition({ file, clock, random, log });
  const rounds = new PlacementRounds({ strategy, position, leadership, nodes, call, clock });
  const retracted = new RetractionReceiver({ node: self, jobs, clock, log });
  const retractions = new Retractions({
    self,
    file: join(settings.data, "retractions"),
    nodes,
    call,
    retracted,
    clock,
    log,
  });
  const placement = new RoundRobinPlacement({
    self,
    strategy,
    rounds,
    peers,
    nodes,
    draining: () => state.draining,
    retractions,
    retracted,
    clock,
    random,
    log,
  });
  /** Also those that were never heard of: they belong to those of whom a majority counts. */
  const voters = (): readonly NodeInfo[] => {
    const known = new Map(nodes().map((node) => [node.name, node]));
    return coordination
      .voters()
      .map((name) => known.get(name) ?? unheardOf(name, coordination.address(name)));
  };
  const schedules = new ReplicatedSchedules({
    self,
    voters,
    call: (node, request, rest) => transport.call(node.url!, request, { ...rest, to: node.name }),
    ...(settings.cluster.quorum === "none" && { required: () => 1 }),
    store,
    leadership,
    targets: ({ task }) =>
      inTurn(willing(nodes(), { role: "worker", tasks: [task] }), position.next()).map(({ name }) => name),
    accepts: () => !state.draining,
    onPlaced: () => signal.raise(),
    events,
    clock,
    log,
  });
  const mounts: Readonly<Record<string, PeerHandler>> = {
    "/peer/placement": (request) => rounds.handle(request),
    [RETRACTIONS_PATH]: (request) => retractions.handle(request),
    [SCHEDULE_PATH]: (request) => schedules.handle(request),
  };
  return { position, placement, retractions, schedules, mounts };
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
