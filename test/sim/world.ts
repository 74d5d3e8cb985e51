/**
 * A deterministic simulation of whole nodes: many in one process, on one timeline, with a simulated network and
 * simulated disks. A seed decides everything: when callers do what, which fault comes when, how long each message takes.
 *
 *   gather   all nodes start and elect a leader
 *   faults   callers submit, cancel and retry jobs, put schedules and drain nodes, while nodes are killed, paused, cut off
 *            and slowed down, and lose their disks
 *   heal     every node runs again, every link works; what was begun must end
 *   audit    the promises are checked, in the nodes and on the disks (checks.ts)
 *
 * Not simulated: real sockets, signatures, HTTP, threads, PostgreSQL, Redis and etcd. Those have contract and process
 * tests.
 */

import { seededRandom } from "../support/seeded-random.ts";
import { callNode, type ClientReply, type ClientRequest } from "./client.ts";
import { audit, follows, isSettled } from "./checks.ts";
import { injectFaults, restartRemoved, resumeLateDrains } from "./faults.ts";
import { History } from "./history.ts";
import { MemoryNetwork } from "../support/memory-network.ts";
import { SimNode, type Bug } from "./node.ts";
import { SharedDatabase } from "./shared.ts";
import type { SimDisk } from "./disk.ts";
import { Timeline } from "./timeline.ts";
import { Workload } from "./workload.ts";

export interface WorldOptions {
  readonly seed: number;
  /** Nodes with a store each, or on one database. */
  readonly fabric?: "peers" | "shared";
  readonly nodes?: number;
  /** Whether nodes with a store each join one after the other, the last one during the faults; otherwise all know all. */
  readonly joined?: boolean;
  /** How long callers and faults go on. */
  readonly faultsMs?: number;
  readonly bug?: Bug;
}

export interface Report {
  readonly history: History;
  readonly digest: string;
  readonly violations: readonly string[];
  readonly network: MemoryNetwork["counts"];
}

const FAULTS_MS = 25_000;
const GATHER_MS = 60_000;
/** Leases end, dead nodes are found, retries wait: all of it is over long before. */
const HEAL_MS = 90_000;
/** A lease that no node ends, a voter that has lost its disk, and a few attempts. */
const ELECTED_MS = 15_000;
/** And the longest pause of a node that asks to join, which is refused for as long as there is no leader. */
const JOINED_MS = 40_000;
/** Without anything left to do: what comes later than this would not come from the faults. */
const QUIET_MS = 6_000;

export class World {
  readonly options: WorldOptions;
  readonly timeline = new Timeline();
  readonly history = new History(this.timeline);
  readonly network: MemoryNetwork;
  /** Null where each node has its own store. */
  readonly database: SharedDatabase | null;
  readonly nodes: readonly SimNode[];
  readonly joined: boolean;
  readonly workload: Workload;
  readonly #dice;
  #requests = 0;

  constructor(options: WorldOptions) {
    this.options = options;
    this.#dice = seededRandom(options.seed);
    this.network = new MemoryNetwork(this.timeline, seededRandom(this.seedOf("network")));
    this.network.usual = { state: "open", delayMs: 0.5, jitterMs: 2, loss: 0, duplicates: 0 };
    const count = options.nodes ?? (this.chance() < 0.7 ? 3 : 5);
    this.joined = options.fabric !== "shared" && (options.joined ?? options.seed % 3 === 0);
    this.nodes = Array.from({ length: count }, (_, at) => new SimNode(this, `node-${"abcdefg"[at]}`));
    this.database = options.fabric === "shared" ? new SharedDatabase(this) : null;
    this.workload = new Workload(this);
  }

  get disks(): readonly SimDisk[] {
    return this.database ? [this.database.disk] : this.nodes.map(({ disk }) => disk);
  }

  static async run(options: WorldOptions): Promise<Report> {
    const world = new World(options);
    const { timeline, history, network } = world;
    try {
      await world.database?.hub.start();
      await world.#gather();
      const work = world.workload.run(options.faultsMs ?? FAULTS_MS);
      await timeline.during(injectFaults(world, options.faultsMs ?? FAULTS_MS));
      world.heal();
      await timeline.during(work);
      await world.#rest();
      await audit(world);
    } finally {
      for (const disk of world.disks) disk.close();
    }
    history.add(`events ${timeline.events}`);
    return { history, digest: history.digest(), violations: history.violations, network: network.counts };
  }

  /** The same for the same seed and purpose. */
  seedOf(purpose: string): number {
    let seed = this.options.seed | 0;
    for (const letter of purpose) seed = (Math.imul(seed, 31) + letter.charCodeAt(0)) | 0;
    return seed >>> 0;
  }

  chance(): number {
    return this.#dice.chance();
  }

  between(least: number, most: number): number {
    return least + this.chance() * (most - least);
  }

  pick<T>(from: readonly T[]): T | undefined {
    return from[Math.floor(this.chance() * from.length)];
  }

  /** At any node that runs, or the given one. Null when no answer came. */
  async call(name: string, request: ClientRequest, at?: SimNode): Promise<ClientReply | null> {
    const node = at ?? this.pick(this.nodes.filter(({ life }) => life?.up));
    if (!node?.life?.up) return null;
    const reply = await callNode(node.life, name, request, this.timeline, `client-${++this.#requests}`);
    this.history.add(`${name} at ${node.name}: ${reply?.status ?? "no answer"}`);
    return reply;
  }

  /** Everything works again: dead processes are started, paused ones go on, links are as usual. */
  heal(): void {
    this.history.add("everything heals");
    this.network.heal();
    for (const node of this.nodes) {
      node.life?.clock.resume();
      if (!node.life) void node.start();
    }
    const electedMs = this.joined ? JOINED_MS : ELECTED_MS;
    this.timeline.after(electedMs, () => {
      if (!follows(this)) this.history.violated(`no leader ${electedMs} ms after the faults`);
    });
  }

  /** Time passes until nothing is left to do, or for so long that something is wrong. */
  async #rest(): Promise<void> {
    const until = this.timeline.monotonic() + HEAL_MS;
    for (let quietMs = 0; quietMs < QUIET_MS && this.timeline.monotonic() < until;) {
      await this.timeline.advance(1_000);
      restartRemoved(this);
      void resumeLateDrains(this);
      quietMs = (await isSettled(this)) ? quietMs + 1_000 : 0;
    }
  }

  async #gather(): Promise<void> {
    const first = this.joined ? this.nodes.slice(0, -1) : this.nodes;
    for (const node of first) void node.start();
    const gathered = (): boolean =>
      first.every(({ life }) => {
        if (!life?.up) return false;
        const { leadership, membership } = life.node.services;
        return leadership.current() !== null && membership.nodes().length >= first.length;
      });
    for (let passed = 0; !gathered(); passed += 250) {
      if (passed > GATHER_MS) throw new Error(`the cluster did not gather: ${this.history.lines.join("\n")}`);
      await this.timeline.advance(250);
    }
    if (!this.joined) return;
    const last = this.nodes.at(-1)!;
    this.timeline.after(this.between(0, FAULTS_MS / 2), () => {
      this.history.counts.joins++;
      if (!last.life) void last.start();
    });
  }
}
