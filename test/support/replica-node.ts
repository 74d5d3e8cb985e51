/**
 * Nodes with a store each, whose schedules are kept by a majority: on a network in memory, under a clock that moves when
 * told. A node's store is its disk and outlives the node; everything else ends with a life.
 */

import type { NodeName } from "../../src/core/ids.ts";
import type { NodeInfo } from "../../src/core/node.ts";
import { BatonError } from "../../src/core/errors.ts";
import type { Term } from "../../src/core/leadership/term.ts";
import { ReplicatedSchedules } from "../../src/peers/schedules/replicated-schedules.ts";
import type { ReplicatedSchedulesOptions } from "../../src/peers/schedules/replicated-schedules.ts";
import { DeclarationWriter } from "../../src/jobs/schedules/declaration-writer.ts";
import { RunningVersions } from "../../src/jobs/schedules/running-versions.ts";
import { declarationRelay, type DeclarationRelay } from "../../src/peers/schedules/declaration-relay.ts";
import { QueuePauses } from "../../src/peers/schedules/queue-pauses.ts";
import { servePeers } from "../../src/peers/rpc/peer-rpc.ts";
import type { Clock } from "../../src/platform/clock.ts";
import { silentLog, type Log } from "../../src/platform/log.ts";
import type { SqliteStore } from "../../src/store/sqlite/store.ts";
import { fakePlatform } from "./fake-platform.ts";
import { nodeInfo } from "./job-builders.ts";
import type { MemoryNetwork } from "./memory-network.ts";
import type { PeerHandler, Transport } from "../../src/transport/transport.ts";

export function nodeNames(count: number): NodeName[] {
  return Array.from({ length: count }, (_, index) => `node-${"abcdefg"[index]}` as NodeName);
}

export function urlOf(name: NodeName): string {
  return `http://${name}:1`;
}

export function memberInfo(name: NodeName): NodeInfo {
  return nodeInfo(name, { incarnation: "1", url: urlOf(name) });
}

export interface ReplicaOptions {
  readonly name: NodeName;
  readonly members: readonly NodeName[];
  readonly disk: SqliteStore;
  readonly network: MemoryNetwork;
  readonly clock: Clock;
  readonly log?: Log;
  readonly parts?: Partial<ReplicatedSchedulesOptions>;
}

/** One life of a node. */
export class ReplicaNode {
  readonly name: NodeName;
  readonly schedules: ReplicatedSchedules;
  readonly pauses: QueuePauses;
  readonly writer: DeclarationWriter;
  readonly declarations: DeclarationRelay;
  readonly handle: PeerHandler;
  readonly transport: Transport;
  /** What this node believes to lead. */
  term: Term | null = null;
  leader: Term | null = null;
  #close: () => void = () => {};
  readonly #network: MemoryNetwork;

  constructor(options: ReplicaOptions) {
    const { name, members, disk, network, clock, log = silentLog, parts } = options;
    this.name = name;
    this.#network = network;
    this.transport = network.transport(urlOf(name));
    const platform = fakePlatform({ name, clock, log });
    const leadership = {
      held: () => this.term,
      current: () => this.term ?? this.leader,
      require: () => {
        if (this.term) return this.term;
        throw new BatonError("NOT_LEADER", `${name} does not lead`);
      },
    };
    this.schedules = new ReplicatedSchedules(platform, {
      store: disk,
      voters: () => members.map((member) => memberInfo(member)),
      call: (url, request, call) => this.transport.call(url, request, call),
      leadership,
      targets: () => [name],
      accepts: () => true,
      onReady: () => {},
      ...parts,
    });
    this.pauses = new QueuePauses(this.schedules, leadership, disk);
    this.writer = new DeclarationWriter(platform, {
      schedules: this.schedules,
      versions: new RunningVersions(clock, { nodes: () => [], alone: false }),
      onChanged: async () => {},
    });
    this.declarations = declarationRelay(this.schedules.replicas, leadership, (...given) =>
      this.writer.take(...given),
    );
    this.handle = servePeers(platform, {
      ...this.schedules.handlers,
      ...this.pauses.handlers,
      ...this.declarations.handlers,
    });
  }

  async start(): Promise<void> {
    await this.transport.start();
    this.#close = this.#network.listen(urlOf(this.name), this.handle);
  }

  /** Whatever it is in the middle of ends here. */
  async stop(): Promise<void> {
    this.#close();
    await this.transport.stop();
  }
}
