/** Clusters of peers in memory: nodes with disks that can be lost, a network that can be cut, and time that moves by hand. */

import { openPeers, type BullyCoordination } from "../../src/peers/open-peers.ts";
import type { BullySettings } from "../../src/peers/bully/peer-state.ts";
import type { PeerSource } from "../../src/peers/bully/peer-list.ts";
import type { NodeIdentity, OwnInfo } from "../../src/core/node.ts";
import type { Clock } from "../../src/platform/clock.ts";
import type { AppendFile, Files } from "../../src/platform/files.ts";
import type { Log } from "../../src/platform/log.ts";
import { probeOf, watchEnds } from "../sim/node-network.ts";
import { fakePlatform } from "./fake-platform.ts";
import { seededRandom } from "./seeded-random.ts";
import { MemoryNetwork } from "./memory-network.ts";
import type { Transport } from "../../src/transport/transport.ts";
import { candidate, OWN_INFO } from "./lock-candidates.ts";
import { MemoryTerms } from "./lock-terms.ts";

/** What outlives a life of a node. */
export class Disk implements Files {
  text: string | null = null;
  terms = new MemoryTerms();
  writes = 0;
  /** Every write fails while it is set. */
  broken = false;

  async read(): Promise<string | null> {
    return this.text;
  }

  async replace(_path: string, text: string): Promise<void> {
    await Promise.resolve();
    if (this.broken) throw new Error("no space left on device");
    this.writes += 1;
    this.text = text;
  }

  append(): Promise<AppendFile> {
    throw new Error("a file of votes is replaced as a whole");
  }

  lose(): void {
    this.text = null;
    this.terms = new MemoryTerms();
  }
}

export interface PeerOptions {
  readonly source?: PeerSource;
  readonly settings?: Partial<BullySettings>;
  readonly info?: () => OwnInfo;
  readonly clock?: Clock;
  /** Instead of the network's own. */
  readonly transport?: Transport;
  readonly files?: Files;
  readonly address?: () => string | null;
}

export interface Peer {
  readonly name: string;
  readonly identity: NodeIdentity;
  readonly coordination: BullyCoordination;
  readonly transport: Transport;
  readonly logged: string[];
  /** As kill -9: from now on nobody hears it, and it hears nobody. */
  kill(): Promise<void>;
  /** As a process that ends well. */
  stop(): Promise<void>;
}

export function urlOf(name: string): string {
  return `http://${name}:1`;
}

export class PeerWorld implements AsyncDisposable {
  readonly network: MemoryNetwork;
  readonly disks = new Map<string, Disk>();
  readonly peers = new Map<string, Peer>();
  readonly #clock: Clock;
  readonly #nodes: Readonly<Record<string, string>>;
  readonly #settings: Partial<BullySettings>;
  readonly #all: Peer[] = [];
  #lives = 0;

  constructor(clock: Clock, names: readonly string[], settings: Partial<BullySettings> = {}) {
    this.network = new MemoryNetwork(clock);
    this.#clock = clock;
    this.#nodes = Object.fromEntries(names.map((name) => [name, urlOf(name)]));
    this.#settings = settings;
  }

  disk(name: string): Disk {
    let disk = this.disks.get(name);
    if (!disk) this.disks.set(name, (disk = new Disk()));
    return disk;
  }

  /** A new life of this name. */
  async start(name: string, options: PeerOptions = {}): Promise<Peer> {
    const peer = this.make(name, options);
    await peer.transport.start();
    await peer.coordination.start();
    return peer;
  }

  make(name: string, options: PeerOptions = {}): Peer {
    const url = urlOf(name);
    const clock = options.clock ?? this.#clock;
    const disk = this.disk(name);
    const identity = candidate(name, `${name}/${++this.#lives}`);
    const transport = options.transport ?? this.network.transport(url);
    const logged: string[] = [];
    const note = (_fields: object, message: string): void => void logged.push(message);
    const log: Log = { debug: note, info: note, warn: note, error: note };
    const random = seededRandom(this.#lives);
    const files = options.files ?? disk;
    const coordination = openPeers(fakePlatform({ identity, clock, random, log, files }), {
      info: options.info ?? (() => ({ ...OWN_INFO, url })),
      address: options.address ?? (() => url),
      transport,
      dir: "",
      terms: disk.terms,
      source: options.source ?? { kind: "static", nodes: this.#nodes },
      settings: { ...DEFAULT_SETTINGS, ...this.#settings, ...options.settings },
      probe: probeOf(this.network, url, clock),
      watchPeer: (address, signal) => watchEnds(this.network, clock, address, signal),
    });
    const close = this.network.listen(url, (request) => coordination.handle(request));
    const peer: Peer = {
      name,
      identity,
      coordination,
      transport,
      logged,
      kill: async () => {
        close();
        await transport.stop();
      },
      stop: async () => {
        await coordination.stop();
        close();
        await transport.stop();
      },
    };
    this.peers.set(name, peer);
    this.#all.push(peer);
    return peer;
  }

  coordination(name: string): BullyCoordination {
    return this.peers.get(name)!.coordination;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const peer of this.#all) await peer.kill();
    await Promise.all(this.#all.map((peer) => peer.coordination.stop()));
  }
}

/** Fast, for tests on the real clock. */
export const QUICK: Partial<BullySettings> = {
  heartbeatMs: 20,
  heartbeatTimeoutMs: 200,
  deadAfterMs: 1_000,
  electionTimeoutMs: 100,
  joinRetryMs: 10,
  joinRetryMsMax: 50,
  leaseMs: 300,
};

/** As a node has them that is told nothing else. */
export const DEFAULT_SETTINGS: BullySettings = {
  quorum: "majority",
  order: "text",
  heartbeatMs: 1_000,
  heartbeatTimeoutMs: 1_200,
  deadAfterMs: 5_000,
  electionTimeoutMs: 500,
  forgetAfterMs: 3_600_000,
  joinRetryMs: 250,
  joinRetryMsMax: 10_000,
  leaseMs: 5_000,
};
