/**
 * The additional work of a node among peers: places new jobs in turn, takes back jobs that were placed twice, and stores
 * schedules on a majority.
 */

import { join } from "node:path";
import type { LeaderElections } from "../leadership/leader-elections.ts";
import { RoundRobinPosition } from "../peers/placement/round-robin-position.ts";
import { PlacementRounds } from "../peers/placement/placement-rounds.ts";
import { RoundRobinPlacement } from "../peers/placement/round-robin-placement.ts";
import { ReplicatedSchedules } from "../peers/schedules/replicated-schedules.ts";
import { declarationRelay } from "../peers/schedules/declaration-relay.ts";
import { QueuePauses } from "../peers/schedules/queue-pauses.ts";
import { servePeers } from "../peers/rpc/peer-rpc.ts";
import { RetractionFile } from "../peers/retractions/retraction-file.ts";
import { Retractions, type RetractableJobs } from "../peers/retractions/retractions.ts";
import { DeclarationWriter } from "../jobs/schedules/declaration-writer.ts";
import { RunningVersions } from "../jobs/schedules/running-versions.ts";
import { inTurn, willing } from "../core/placement-rules.ts";
import type { Store } from "../store/store.ts";
import type { PeerHandler } from "../transport/transport.ts";
import type { PeerBackend } from "./backend-peers.ts";
import type { NodePlatform } from "./platform.ts";

export type PeerWork = ReturnType<typeof peerWork>;

export function peerWork(
  platform: NodePlatform,
  { transport, coordination, peers, nodes, client }: PeerBackend,
  { scheduler: leadership }: LeaderElections,
  {
    store: opened,
    jobs,
    onScheduleChanged: onChanged,
  }: {
    readonly store: Store;
    readonly jobs: RetractableJobs;
    readonly onScheduleChanged: (schedule: string) => Promise<void>;
  },
) {
  const { settings, state, signal } = platform;
  // A store that is the node's own takes notes.
  const store = opened as Store & Required<Pick<Store, "scheduleNotes">>;
  const { strategy, stateFile } = settings.placement;
  const file = stateFile === "" ? join(settings.data, "placement.json") : stateFile;
  const position = new RoundRobinPosition(platform, file);
  const rounds = new PlacementRounds({ ...platform, strategy, position, leadership, client, nodes });
  const retractionFile = new RetractionFile(platform, join(settings.data, "retractions"));
  const retractions = new Retractions(platform, retractionFile, client, nodes, jobs);
  const placement = new RoundRobinPlacement(platform, { strategy, rounds, peers, nodes, retractions });
  const schedules = new ReplicatedSchedules(platform, {
    // Also those that were never heard of: they belong to those of whom a majority counts.
    voters: () => coordination.peers.names().map((name) => ({ name, url: coordination.peers.address(name) })),
    entry: (member) => coordination.peers.entry(member),
    membership: coordination.voter,
    call: transport.call.bind(transport),
    ...(settings.cluster.quorum === "none" && { required: () => 1 }),
    store,
    leadership,
    targets: ({ task }) =>
      inTurn(willing(nodes(), { role: "worker", tasks: [task] }), position.next()).map(({ name }) => name),
    accepts: () => !state.draining,
    onReady: () => signal.raise(),
  });
  coordination.changes.settleFirst(() => schedules.settle());
  const pauses = new QueuePauses(schedules, leadership, store);
  const versions = new RunningVersions(platform.clock, { nodes, alone: false });
  const declarationWriter = new DeclarationWriter(platform, { schedules, versions, onChanged });
  const declarations = declarationRelay(schedules.replicas, leadership, (version, declared) =>
    declarationWriter.take(version, declared),
  );
  const mounts: Readonly<Record<string, PeerHandler>> = {
    "/peer/placement": rounds.handle,
    "/peer/retractions": retractions.handle,
    "/peer/schedules": servePeers(platform, {
      ...schedules.handlers,
      ...pauses.handlers,
      ...declarations.handlers,
    }),
  };
  return {
    position,
    placement,
    retractionFile,
    retractions,
    schedules,
    pauses,
    declarations,
    declarationWriter,
    mounts,
  };
}
