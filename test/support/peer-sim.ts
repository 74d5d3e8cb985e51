/**
 * A whole cluster of peers in one thread: real coordination and real electors over a network that delays, loses, doubles and
 * reorders messages, with clocks that run at their own rates, processes that stop or die, and disks that forget.
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
import { fakePlatform } from "./fake-platform.ts";
import { ManualClock } from "./manual-clock.ts";
import type { Files } from "../../src/platform/files.ts";
import { type Random } from "../../src/platform/random.ts";
import { seededRandom } from "./seeded-random.ts";
import { Lifecycle } from "../../src/platform/service.ts";
import type { Outcome, PeerHandler, PeerRequest, Transport } from "../../src/transport/transport.ts";
import { holdRequests, watchByRequest } from "./held-requests.ts";
import { candidate, OWN_INFO } from "./lock-candidates.ts";
import { NodeClock } from "./lock-node-clock.ts";
import { MemoryTerms } from "./lock-terms.ts";
import { ROLE } from "./lock-world.ts";

export const ELECTION: ElectorSettings = { leaseMs: 5_000, renewMs: 1_000, marginMs: 1_500, retryMs: 500 };

export interface Faults {
  readonly delayMs: readonly [number, number];
  readonly loss: number;
  readonly duplicates: number;
}

const CALM: Faults = { delayMs: [0, 1], loss: 0, duplicates: 0 };

interface Listener {
  readonly handler: PeerHandler;
  readonly clock: NodeClock;
}

class SimNetwork {
  faults: Faults = CALM;
  readonly #world: ManualClock;
  readonly #random: Random;
  readonly #listeners = new Map<string, Listener>();
  /** Requests that a node has not answered yet. */
  readonly #open = new Map<string, Set<(outcome: Outcome) => void>>();
  /** `a b`: what a sends to b vanishes. */
  readonly #cut = new Set<string>();

  constructor(world: ManualClock, random: Random) {
    this.#world = world;
    this.#random = random;
  }

  listen(name: string, listener: Listener): void {
    this.#listeners.set(name, listener);
  }

  /** Its machine ends the connections of a process that dies. */
  unlisten(name: string): void {
    this.#listeners.delete(name);
    const broken = [...(this.#open.get(name) ?? [])];
    this.#open.delete(name);
    for (const back of broken) back({ outcome: "unknown", reason: "the connection broke" });
  }

  cut(from: string, to: string): void {
    this.#cut.add(`${from} ${to}`);
  }

  mend(from: string, to: string): void {
    this.#cut.delete(`${from} ${to}`);
  }

  heal(): void {
    this.#cut.clear();
  }

  /** Each message on its own: later ones may come first. */
  send(from: string, to: string, arrive: () => void): void {
    const { delayMs, loss, duplicates } = this.faults;
    const copies = this.#random.chance() < duplicates ? 2 : 1;
    for (let copy = 0; copy < copies; copy++) {
      const lost = this.#random.chance() < loss || this.#cut.has(`${from} ${to}`);
      const [least, most] = delayMs;
      const after = least + (most - least) * this.#random.chance();
      if (!lost) this.#world.after(after, arrive);
    }
  }

  /** What happens to a request: `answer` is called with each reply that comes back. */
  carry(from: string, to: string, request: PeerRequest, answer: (outcome: Outcome) => void): void {
    this.send(from, to, () => {
      const listener = this.#listeners.get(to);
      const back = (outcome: Outcome): void => this.send(to, from, () => answer(outcome));
      if (!listener) return back({ outcome: "refused", reason: "nobody listens" });
      const { method, path, headers = {}, body = "" } = request;
      const open = this.#open.get(to) ?? new Set();
      this.#open.set(to, open.add(back));
      const reply = (outcome: Outcome): void => {
        if (open.delete(back)) back(outcome);
      };
      // A process that is stopped answers when it runs again; one that has died never does.
      listener.clock.after(0, () => {
        listener.handler({ from, method, path, headers, body }).then(
          ({ status, body = "" }) => reply({ outcome: "reply", status, headers: {}, body }),
          (error: unknown) => reply({ outcome: "unknown", reason: String(error) }),
        );
      });
    });
  }

  async probe(from: string, to: string, clock: NodeClock, deadlineMs: number) {
    const found = Promise.withResolvers<"listening" | "refusing" | "silent">();
    const callOff = clock.after(deadlineMs, () => found.resolve("silent"));
    this.send(from, to, () => {
      // The machine answers, also for a process that is stopped.
      const verdict = this.#listeners.has(to) ? "listening" : "refusing";
      this.send(to, from, () => found.resolve(verdict));
    });
    return found.promise.finally(callOff);
  }
}

class SimTransport extends Lifecycle implements Transport {
  readonly kind = "sim";
  readonly #name: string;
  readonly #clock: NodeClock;
  readonly #network: SimNetwork;

  constructor(name: string, clock: NodeClock, network: SimNetwork) {
    super();
    this.#name = name;
    this.#clock = clock;
    this.#network = network;
  }

  call(peerUrl: string, request: PeerRequest, options: { deadlineMs: number; signal?: AbortSignal }) {
    const { promise, resolve } = Promise.withResolvers<Outcome>();
    const giveUp = (): void => resolve({ outcome: "unknown", reason: "no answer in time" });
    const callOff = this.#clock.after(options.deadlineMs, giveUp);
    options.signal?.addEventListener("abort", giveUp, { once: true });
    this.#network.carry(this.#name, new URL(peerUrl).hostname, request, (outcome) =>
      this.#clock.after(0, () => resolve(outcome)),
    );
    return promise.finally(callOff);
  }

  stream(): never {
    throw new Error("no streams here");
  }

  protected onStart(): void {}
  protected onStop(): void {}
}

/** Writes take a while, and what was not finished when the process died is lost. */
class SimDisk {
  text: string | null = null;
  terms = new MemoryTerms();
  lose(): void {
    this.text = null;
    this.terms = new MemoryTerms();
  }
}

export interface SimNode {
  readonly name: string;
  readonly identity: NodeIdentity;
  readonly clock: NodeClock;
  readonly coordination: BullyCoordination;
  readonly elector: Elector;
  dead: boolean;
}

export interface SimOptions {
  readonly names: readonly string[];
  readonly seed?: number;
  readonly settings?: Partial<BullySettings>;
  readonly election?: ElectorSettings;
  /** The first founds the cluster and the others join it; otherwise the names are a list that was set. */
  readonly joined?: boolean;
  /** Of a disk, in ms. */
  readonly writeMs?: number;
}

export class PeerSim implements AsyncDisposable {
  readonly world = new ManualClock();
  readonly network: SimNetwork;
  readonly nodes = new Map<string, SimNode>();
  /** Every term that was granted, in the order in which it was. */
  readonly grants: Term[] = [];
  readonly #disks = new Map<string, SimDisk>();
  readonly #random: Random;
  readonly #o: SimOptions;
  #lives = 0;
  /** Told by `check`: thrown inside an elector it would only be one more failed attempt. */
  #violation: string | null = null;

  constructor(options: SimOptions) {
    this.#o = options;
    this.#random = seededRandom(options.seed ?? 1);
    this.network = new SimNetwork(this.world, this.#random);
  }

  disk(name: string): SimDisk {
    let disk = this.#disks.get(name);
    if (!disk) this.#disks.set(name, (disk = new SimDisk()));
    return disk;
  }

  async startAll(): Promise<void> {
    for (const name of this.#o.names) await this.start(name);
  }

  async start(name: string, rate = 1): Promise<SimNode> {
    const clock = new NodeClock(this.world, rate);
    const disk = this.disk(name);
    const identity = candidate(name, `${name}/${++this.#lives}`);
    const { network } = this;
    const transport = new SimTransport(name, clock, network);
    const files: Files = {
      read: async () => disk.text,
      replace: async (_path, text) => {
        await clock.sleep(this.#o.writeMs ?? 0);
        disk.text = text;
      },
      append: () => Promise.reject(new Error("a file of votes is replaced as a whole")),
    };
    const url = `http://${name}`;
    const random = seededRandom(this.#lives);
    const coordination = openPeers(fakePlatform({ identity, clock, random, files }), {
      info: () => ({ ...OWN_INFO, url }),
      transport,
      dir: "",
      terms: disk.terms,
      source: this.#source(name),
      settings: { leaseMs: (this.#o.election ?? ELECTION).leaseMs, ...this.#o.settings },
      probe: (address, deadlineMs) => network.probe(name, new URL(address).hostname, clock, deadlineMs),
      watchPeer: watchByRequest(transport, clock),
    });
    await transport.start();
    await this.#during(coordination.start());
    const handler = holdRequests((request) => coordination.handle(request), clock);
    network.listen(name, { clock, handler });
    const elector = new Elector({
      lock: this.#watched(coordination.lock(ROLE)),
      identity,
      role: ROLE,
      clock,
      random: seededRandom(1_000 + this.#lives),
      settings: this.#o.election ?? ELECTION,
    });
    await elector.start();
    const node: SimNode = { name, identity, clock, coordination, elector, dead: false };
    this.nodes.set(name, node);
    return node;
  }

  #source(name: string): PeerSource {
    const nodes = Object.fromEntries(this.#o.names.map((each) => [each, `http://${each}`]));
    if (!this.#o.joined) return { kind: "static", nodes };
    const { [name]: _, ...others } = nodes;
    return { kind: "join", addresses: name === this.#o.names[0] ? [] : Object.values(others) };
  }

  /** Lives, and is a member as far as it knows. */
  takesPart(node: SimNode): boolean {
    return !node.dead && node.coordination.voters().includes(node.identity.name);
  }

  node(name: string): SimNode {
    return this.nodes.get(name)!;
  }

  /** kill -9; with `machine` nobody is left to refuse connections either. */
  kill(name: string, options: { machine?: boolean } = {}): void {
    const node = this.node(name);
    node.dead = true;
    node.clock.stop();
    this.network.unlisten(name);
    if (options.machine) this.isolate(name);
  }

  isolate(name: string): void {
    for (const other of this.#o.names) {
      if (other === name) continue;
      this.network.cut(name, other);
      this.network.cut(other, name);
    }
  }

  /** Only those in one part hear each other. */
  split(...parts: readonly (readonly string[])[]): void {
    this.network.heal();
    const partOf = (name: string): number => parts.findIndex((part) => part.includes(name));
    for (const a of this.#o.names)
      for (const b of this.#o.names) if (a !== b && partOf(a) !== partOf(b)) this.network.cut(a, b);
  }

  /** Whoever leads by its own belief, of those that live. */
  leaders(): readonly SimNode[] {
    return [...this.nodes.values()].filter((node) => !node.dead && node.elector.held() !== null);
  }

  /** Moves time on in small steps and looks at everybody after each. */
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

  /** Exactly one leads, and everybody who lives says so. */
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
    this.network.faults = CALM;
    this.network.heal();
    const living = [...this.nodes.values()].filter((node) => !node.dead);
    for (const { clock } of living) clock.resume();
    const stops = living.map(async ({ elector, coordination }) => {
      await elector.stop();
      await coordination.stop();
    });
    await this.#during(Promise.all(stops), 1_000);
  }

  /** Time passes while this is waited for. */
  async #during(work: Promise<unknown>, stepMs = 1): Promise<void> {
    let over = false;
    const done = work.finally(() => (over = true));
    while (!over) await this.world.advance(stepMs);
    await done;
  }
}
