/**
 * The elections of a simulated world alone: coordination and electors of peers, without the rest of their nodes, on the timeline,
 * the network and the disks of test/sim. For single elections that a test directs; random histories are whole nodes (sim/world.ts).
 * Every grant and every leader is checked as it happens.
 */

import assert from "node:assert/strict";
import type { BullySettings } from "../../src/peers/bully/peer-state.ts";
import type { PeerSource } from "../../src/peers/bully/peer-list.ts";
import type { LeaseLock } from "../../src/leadership/coordination.ts";
import { Elector } from "../../src/leadership/elector.ts";
import type { ElectorSettings } from "../../src/leadership/elector.ts";
import { openPeers, type BullyCoordination } from "../../src/peers/open-peers.ts";
import type { NodeIdentity } from "../../src/core/node.ts";
import type { Term } from "../../src/core/leadership/term.ts";
import { VOTE_FILE } from "../../src/peers/bully/election/voter.ts";
import type { Transport } from "../../src/transport/transport.ts";
import { SimDisk } from "../sim/disk.ts";
import { probeOf, watchEnds } from "../sim/node-network.ts";
import { Timeline } from "../sim/timeline.ts";
import { fakePlatform } from "./fake-platform.ts";
import { candidate, OWN_INFO } from "./lock-candidates.ts";
import { DEFAULT_SETTINGS } from "./lock-peers.ts";
import { ROLE } from "./lock-world.ts";
import { MemoryNetwork } from "./memory-network.ts";
import { ProcessClock } from "./process-clock.ts";
import { seededRandom } from "./seeded-random.ts";

export const ELECTION: ElectorSettings = { leaseMs: 5_000, renewMs: 1_000, marginMs: 1_500, retryMs: 500 };

export interface SimNode {
  readonly name: string;
  readonly identity: NodeIdentity;
  readonly clock: ProcessClock;
  readonly coordination: BullyCoordination;
  readonly elector: Elector;
  readonly transport: Transport;
  readonly unlisten: () => void;
  dead: boolean;
}

export interface SimOptions {
  readonly names: readonly string[];
  readonly settings?: Partial<BullySettings>;
  readonly election?: ElectorSettings;
  /** The first founds the cluster and the others join it; otherwise the names are a list that was set. */
  readonly joined?: boolean;
  /** Of a disk, in ms. */
  readonly writeMs?: number;
}

export class PeerSim implements AsyncDisposable {
  readonly world = new Timeline();
  readonly network: MemoryNetwork;
  readonly nodes = new Map<string, SimNode>();
  /** Every term that was granted, in the order in which it was. */
  readonly grants: Term[] = [];
  readonly #disks = new Map<string, SimDisk>();
  readonly #o: SimOptions;
  #lives = 0;
  /** Reported by `check`: thrown inside an elector it would only be one more failed attempt. */
  #violation: string | null = null;

  constructor(options: SimOptions) {
    this.#o = options;
    this.network = new MemoryNetwork(this.world, seededRandom(1));
    this.network.usual = { ...this.network.usual, jitterMs: 1 };
  }

  disk(name: string): SimDisk {
    let disk = this.#disks.get(name);
    if (!disk) this.#disks.set(name, (disk = new SimDisk(this.#o.writeMs ?? 0)));
    return disk;
  }

  /** The file of its votes, as it is on disk. */
  votesOf(name: string): string | null {
    return this.disk(name).text(VOTE_FILE);
  }

  async startAll(): Promise<void> {
    for (const name of this.#o.names) await this.start(name);
  }

  async start(name: string): Promise<SimNode> {
    const clock = new ProcessClock(this.world);
    const disk = this.disk(name);
    const identity = candidate(name, `${name}/${++this.#lives}`);
    const { network } = this;
    const url = urlOf(name);
    const transport = network.transport(url, clock, name);
    const random = seededRandom(this.#lives);
    const platform = fakePlatform({ identity, clock, random, files: disk.files(clock) });
    const coordination = openPeers(platform, {
      info: () => ({ ...OWN_INFO, url }),
      transport,
      dir: "",
      terms: disk.openStore(clock).terms,
      source: this.#source(name),
      settings: { ...DEFAULT_SETTINGS, leaseMs: (this.#o.election ?? ELECTION).leaseMs, ...this.#o.settings },
      probe: probeOf(network, url, clock),
      watchPeer: (address, signal) => watchEnds(network, clock, address, signal),
    });
    await transport.start();
    await this.world.during(coordination.start());
    const unlisten = network.listen(url, (request) => coordination.handle(request), clock);
    const elector = new Elector({
      lock: this.#watched(coordination.lock(ROLE)),
      identity,
      role: ROLE,
      clock,
      random: seededRandom(1_000 + this.#lives),
      settings: this.#o.election ?? ELECTION,
    });
    await elector.start();
    const node: SimNode = { name, identity, clock, coordination, elector, transport, unlisten, dead: false };
    this.nodes.set(name, node);
    return node;
  }

  #source(name: string): PeerSource {
    const nodes = Object.fromEntries(this.#o.names.map((each) => [each, urlOf(each)]));
    if (!this.#o.joined) return { kind: "static", nodes };
    const { [name]: _, ...others } = nodes;
    return { kind: "join", addresses: name === this.#o.names[0] ? [] : Object.values(others) };
  }

  /** Lives, and is a member as far as it knows. */
  takesPart(node: SimNode): boolean {
    return !node.dead && node.coordination.peers.names().includes(node.identity.name);
  }

  node(name: string): SimNode {
    return this.nodes.get(name)!;
  }

  /** SIGKILL; with `machine` its operating system refuses no connections either. */
  kill(name: string, options: { machine?: boolean } = {}): void {
    const node = this.node(name);
    node.dead = true;
    node.clock.end();
    node.unlisten();
    this.disk(name).crash();
    if (options.machine) this.isolate(name);
  }

  isolate(name: string): void {
    for (const other of this.#o.names) if (other !== name) this.network.cut(urlOf(name), urlOf(other));
  }

  /** In this direction only. */
  cut(from: string, to: string): void {
    this.network.setLink(urlOf(from), urlOf(to), { state: "silent" });
  }

  /** Only those in one part hear each other. */
  split(...parts: readonly (readonly string[])[]): void {
    this.network.heal();
    const partOf = (name: string): number => parts.findIndex((part) => part.includes(name));
    for (const a of this.#o.names)
      for (const b of this.#o.names) if (a !== b && partOf(a) !== partOf(b)) this.cut(a, b);
  }

  /** Those that believe to lead, of those that run. */
  leaders(): readonly SimNode[] {
    return [...this.nodes.values()].filter((node) => !node.dead && node.elector.held() !== null);
  }

  /** Moves time on in small steps and checks all nodes after each. */
  async pass(ms: number, stepMs = 50): Promise<void> {
    for (let left = ms; left > 0; left -= stepMs) {
      await this.world.advance(Math.min(stepMs, left));
      this.check();
    }
  }

  /** How long it took; fails after `ms`. */
  async until(what: string, is: () => boolean, ms: number, stepMs = 10): Promise<number> {
    const from = this.world.monotonic();
    while (!is()) {
      assert.ok(this.world.monotonic() - from < ms, `in vain for ${ms} ms: ${what}`);
      await this.pass(stepMs, stepMs);
    }
    return this.world.monotonic() - from;
  }

  async leader(ms = 10_000): Promise<SimNode> {
    await this.until("a leader", () => this.leaders().length === 1, ms);
    return this.leaders()[0]!;
  }

  /** Exactly one leads, and all nodes that run agree. */
  agreed(): boolean {
    const [leader, ...others] = this.leaders();
    if (!leader || others.length > 0) return false;
    const epoch = leader.elector.held()!.epoch;
    return [...this.nodes.values()].every(
      (node) =>
        !this.takesPart(node) ||
        (node.coordination.leader()?.epoch === epoch && node.coordination.leader()?.leader === leader.name),
    );
  }

  check(): void {
    if (this.#violation !== null) assert.fail(this.#violation);
    if (this.#o.settings?.quorum === "none") return;
    const leaders = this.leaders();
    const named = leaders.map((node) => `${node.identity.incarnation} in ${node.elector.held()?.epoch}`);
    assert.ok(leaders.length <= 1, `two lead: ${named.join(" and ")}`);
  }

  #watched(lock: LeaseLock): LeaseLock {
    return {
      acquire: async (who, ttlMs) => {
        const term = await lock.acquire(who, ttlMs);
        if (term) this.#granted(term);
        return term;
      },
      renew: (term, ttlMs) => lock.renew(term, ttlMs),
      release: (term) => lock.release(term),
      read: () => lock.read(),
      tenure: () => lock.tenure(),
      released: (signal) => lock.released(signal),
    };
  }

  #granted(term: Term): void {
    if (this.#o.settings?.quorum !== "none") {
      for (const earlier of this.grants) {
        const both = `${earlier.epoch} of ${earlier.incarnation}, ${term.epoch} of ${term.incarnation}`;
        if (term.epoch <= earlier.epoch) this.#violation ??= `an epoch came again or went back: ${both}`;
      }
    }
    this.grants.push(term);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.network.heal();
    const living = [...this.nodes.values()].filter((node) => !node.dead);
    for (const { clock } of living) clock.resume();
    const stops = living.map(async ({ elector, coordination, transport }) => {
      await elector.stop();
      await coordination.stop();
      await transport.stop();
    });
    await this.world.during(Promise.all(stops));
    for (const disk of this.#disks.values()) disk.close();
  }
}

function urlOf(name: string): string {
  return `http://${name}`;
}
