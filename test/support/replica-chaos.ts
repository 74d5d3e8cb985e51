/**
 * A seeded history of a cluster whose nodes have a store each: leaders come and go, two at a time, nodes die between any
 * two steps and come back with their disks, the network splits, loses, doubles and delays. All of it by one clock and one
 * source of chance, so that a seed tells the same story again.
 */

import assert from "node:assert/strict";
import type { NodeName } from "../../src/core/ids.ts";
import type { Job } from "../../src/core/jobs/job.ts";
import type { ScheduleDefinition } from "../../src/core/schedules/schedule.ts";
import type { Term } from "../../src/core/leadership/term.ts";
import type { ReplicatedSchedulesOptions } from "../../src/peers/schedules/replicated-schedules.ts";
import { scheduleDuty } from "../../src/jobs/schedules/schedule-duty.ts";
import { ManualClock } from "./manual-clock.ts";
import { fakePlatform } from "./fake-platform.ts";
import type { Random } from "../../src/platform/random.ts";
import { seededRandom } from "./seeded-random.ts";
import { memoryStore, type MemoryStore } from "./memory-store.ts";
import type { FoundNotes, ScheduleNotes } from "../../src/store/schedule-notes.ts";
import { MemoryNetwork } from "./memory-network.ts";
import type { Outcome } from "../../src/transport/transport.ts";
import { nodeInfo, nodeNames, ReplicaNode, urlOf } from "./replica-node.ts";

export interface ChaosOptions {
  readonly nodes: number;
  readonly seed: number;
  readonly secondsOfChaos: number;
  /** How likely each is at each step. */
  readonly crash: number;
  readonly usurp: number;
  readonly loss: number;
  /** To break the rules, and see that it is noticed. */
  readonly parts?: Partial<ReplicatedSchedulesOptions>;
  readonly tamper?: (disk: MemoryStore) => Partial<ScheduleNotes>;
}

interface Life {
  readonly node: ReplicaNode;
  dead: boolean;
  ending: AbortController;
}

const STEP_MS = 20;
const EVERY_MS = 1_000;
const NEVER = new Promise<never>(() => {});

export class ReplicaChaos {
  readonly clock = new ManualClock();
  readonly random: Random;
  readonly members: readonly NodeName[];
  readonly disks = new Map<NodeName, MemoryStore>();
  /** First instant of each schedule that was put with success. */
  readonly acknowledged = new Map<string, number>();
  /** What each may look like now: the last change that was answered, and those after it whose outcome is unknown. */
  readonly possible = new Map<string, Set<string>>();
  /** The same of the queue that is paused and resumed. */
  pauses: readonly { readonly number: number; readonly paused: boolean }[] = [{ number: 0, paused: false }];
  readonly counts = { occurrences: 0, crashes: 0, terms: 0, lost: 0, puts: 0, pauses: 0 };
  readonly #options: ChaosOptions;
  readonly #network = new MemoryNetwork(this.clock);
  readonly #lives = new Map<NodeName, Life>();
  readonly #first = new Map<string, number>();
  #epoch = 0;
  #incarnation = 0;
  #calm = false;

  constructor(options: ChaosOptions) {
    this.#options = options;
    this.random = seededRandom(options.seed);
    this.members = nodeNames(options.nodes);
  }

  /** Tells the story of a seed, and throws unless every occurrence has made one job. */
  static async run(options: ChaosOptions): Promise<ReplicaChaos["counts"]> {
    const chaos = new ReplicaChaos(options);
    try {
      await chaos.#story();
      await chaos.#audit();
      return chaos.counts;
    } finally {
      chaos.#calm = true;
      for (const life of chaos.#lives.values()) await chaos.#end(life);
      for (const disk of chaos.disks.values()) await disk.close();
    }
  }

  async #story(): Promise<void> {
    for (const name of this.members) {
      const disk = memoryStore({ clock: this.clock });
      this.disks.set(name, disk);
      await this.#start(name);
    }
    this.#elect(this.members[0]!);
    const until = this.clock.now() + this.#options.secondsOfChaos * 1_000;
    while (this.clock.now() < until) {
      await this.#event();
      await this.clock.advance(STEP_MS);
    }
    await this.#heal();
  }

  /** All are back, everybody reaches everybody, one leads; until nothing is left to do. */
  async #heal(): Promise<void> {
    this.#calm = true;
    this.#network.heal();
    for (const name of this.members) if (this.#lives.get(name)!.dead) await this.#start(name);
    for (const life of this.#lives.values()) this.#depose(life);
    await this.clock.advance(7_000); // longer than whatever is still on its way
    this.#elect(this.members[this.#below(this.members.length)]!);
    for (let waited = 0; waited < 60_000; waited += STEP_MS) {
      await this.clock.advance(STEP_MS);
      if (waited % EVERY_MS === 0 && waited > 10_000 && (await this.#isQuiet())) return;
    }
    assert.fail(`seed ${this.#options.seed}: a healed cluster did not come to rest`);
  }

  async #isQuiet(): Promise<boolean> {
    for (const disk of this.disks.values()) {
      for (const { name, nextAt } of await disk.schedules.list()) {
        const [note] = (await disk.scheduleNotes.read({ name })).notes;
        // One second's run may be on its way at any time.
        if (
          note &&
          note.open.flatMap(({ runs }) => runs).some(({ at }) => at < this.clock.now() - 3 * EVERY_MS)
        )
          return false;
        if (nextAt !== null && nextAt < this.clock.now() - EVERY_MS) return false;
      }
    }
    return true;
  }

  // ------------------------------------------------------------ what happens

  async #event(): Promise<void> {
    const living = [...this.#lives.values()].filter(({ dead }) => !dead);
    const some = living[this.#below(living.length)];
    const chance = this.random.chance();
    if (chance < 0.01) this.#split();
    else if (chance < 0.02) this.#network.heal();
    else if (chance < 0.03) this.#slowLink();
    else if (chance < 0.04 && some) this.#elect(some.node.name);
    else if (chance < 0.06) void this.#change();
    else if (chance < 0.08) {
      for (const [name, { dead }] of this.#lives)
        if (dead && this.random.chance() < 0.5) await this.#start(name);
    }
  }

  #split(): void {
    const side = new Set(this.members.filter(() => this.random.chance() < 0.5));
    const how = this.random.chance() < 0.5 ? "silent" : "refused";
    for (const a of this.members) {
      for (const b of this.members)
        if (side.has(a) && !side.has(b)) this.#network.cut(urlOf(a), urlOf(b), how);
    }
  }

  #slowLink(): void {
    const [a, b] = [this.#below(this.members.length), this.#below(this.members.length)];
    const delayMs = this.random.chance() < 0.3 ? 2_000 + this.#below(2_000) : this.#below(100);
    this.#network.setLink(urlOf(this.members[a]!), urlOf(this.members[b]!), { delayMs });
  }

  /** The new leader's election has a majority's word; whether anybody can be reached afterwards is another matter. */
  #elect(name: NodeName): void {
    const life = this.#lives.get(name)!;
    if (life.dead) return;
    this.#depose(life);
    const incarnation = `${this.#incarnation}`;
    const term: Term = { role: "scheduler", leader: name, incarnation, epoch: ++this.#epoch };
    this.counts.terms++;
    for (const other of this.#lives.values()) {
      if (other === life || other.node.term === null) continue;
      const { ending } = other;
      // An old leader hears of it late, and acts until then.
      this.clock.after(this.#below(3_000), () => other.ending === ending && this.#depose(other));
    }
    life.node.term = term;
    life.ending = new AbortController();
    const { schedules } = life.node;
    const platform = fakePlatform({ clock: this.clock, random: this.random, name });
    const fire = scheduleDuty(platform, {
      store: { schedules: schedules.leading },
      channels: { publish: async () => {}, subscribe: () => ({ close: async () => {} }) },
      author: () => ({ node: name, ownerEpoch: term.epoch, leaderEpoch: term.epoch }),
      replicated: true,
    });
    for (const duty of [fire, schedules.duty]) duty(term, life.ending.signal).catch(() => {});
  }

  #depose(life: Life): void {
    life.node.term = null;
    life.ending.abort();
  }

  /** Somebody puts a schedule, new or with another payload, at a node that believes to lead. */
  async #change(): Promise<void> {
    const leaders = [...this.#lives.values()].filter(({ dead, node }) => !dead && node.term);
    const leader = leaders[this.#below(leaders.length)];
    if (!leader) return;
    if (this.random.chance() < 0.3) return this.#pause(leader.node);
    const name = `s${this.#below(3)}`;
    const payload = `${++this.counts.puts}`;
    const { schedules } = leader.node;
    try {
      const present = await schedules.get(name);
      const possible = this.possible.get(name) ?? new Set(["none"]);
      this.possible.set(name, possible.add(payload));
      const first = this.#first.get(name) ?? Math.ceil((this.clock.now() + 1) / EVERY_MS) * EVERY_MS;
      this.#first.set(name, first);
      await schedules.put(definition(name, payload), present ? present.nextAt : first);
      this.acknowledged.set(name, first);
      // Whatever was unknown before is now certainly below it; what was sent since may still come.
      const later = [...possible].filter((one) => Number(one) > Number(payload));
      this.possible.set(name, new Set([payload, ...later]));
    } catch {
      // Nobody was promised anything.
    }
  }

  async #pause({ pauses }: ReplicaNode): Promise<void> {
    const change = { number: ++this.counts.pauses, paused: this.random.chance() < 0.5 };
    this.pauses = [...this.pauses, change];
    try {
      await pauses.setPaused("mail", change.paused);
      this.pauses = [change, ...this.pauses.filter(({ number }) => number > change.number)];
    } catch {
      // Nobody was promised anything.
    }
  }

  // ------------------------------------------------------------ lives

  async #start(name: NodeName): Promise<void> {
    const disk = this.disks.get(name)!;
    this.#incarnation++;
    const { members, clock } = this;
    const { parts, tamper } = this.#options;
    const here = (): Life => life;
    const node: ReplicaNode = new ReplicaNode({
      name,
      members,
      disk,
      network: this.#network,
      clock,
      parts: {
        store: {
          schedules: disk.schedules,
          jobs: disk.jobs,
          scheduleNotes: this.#mortal(here, disk.scheduleNotes, tamper?.(disk)),
        },
        targets: () => this.#shuffled(),
        accepts: () => this.#calm || this.random.chance() > 0.1,
        call: (url, request, options) =>
          this.#unreliable(here, () => node.transport.call(url, request, options), options.deadlineMs),
        voters: () => members.map((member) => nodeInfo(member)),
        ...parts,
      },
    });
    const life: Life = { node, dead: false, ending: new AbortController() };
    this.#lives.set(name, life);
    await node.start();
  }

  async #end(life: Life): Promise<void> {
    life.dead = true;
    this.#depose(life);
    await life.node.stop();
  }

  /** A process may die, or lose its leadership, before and after whatever it does; then it does nothing any more. */
  #mortal(life: () => Life, notes: ScheduleNotes, broken: Partial<ScheduleNotes> = {}): ScheduleNotes {
    const wrap =
      <A extends unknown[], R>(act: (...args: A) => Promise<R>) =>
      async (...args: A): Promise<R> => {
        await this.#fate(life());
        const result = await act(...args);
        await this.#fate(life());
        return result;
      };
    return {
      write: wrap(broken.write ?? ((...args) => notes.write(...args))),
      read: wrap((broken.read ?? notes.read.bind(notes)) as (...args: unknown[]) => Promise<FoundNotes>),
      place: wrap(broken.place ?? ((...args) => notes.place(...args))),
      forget: wrap((...args) => notes.forget(...args)),
      learn: wrap((pauses) => notes.learn(pauses)),
    };
  }

  async #fate(life: Life): Promise<void> {
    if (!life.dead && !this.#calm) {
      if (this.random.chance() < this.#options.crash) {
        this.counts.crashes++;
        await this.#end(life);
      } else if (this.random.chance() < this.#options.usurp) {
        this.#elect(this.members[this.#below(this.members.length)]!);
      }
    }
    if (life.dead) await NEVER;
  }

  async #unreliable(life: () => Life, send: () => Promise<Outcome>, deadlineMs: number): Promise<Outcome> {
    await this.#fate(life());
    const chance = this.#calm ? 1 : this.random.chance();
    const { loss } = this.#options;
    const lost: Outcome = { outcome: "unknown", reason: "lost" };
    if (chance < loss) {
      this.counts.lost++;
      // The request, or the reply.
      if (chance < loss / 2) await send();
      await this.clock.sleep(deadlineMs);
      return lost;
    }
    const outcome = await send();
    // A copy that arrives long after its caller has heard the answer, or given up.
    if (chance < loss * 1.5 && outcome.outcome !== "refused") {
      this.clock.after(this.#below(5_000), () => void (life().dead ? null : send()));
    }
    await this.#fate(life());
    return outcome;
  }

  #below(limit: number): number {
    return Math.floor(this.random.chance() * limit);
  }

  #shuffled(): NodeName[] {
    return [...this.members].sort(() => this.random.chance() - 0.5);
  }

  // ------------------------------------------------------------ what must be true

  async #jobs(): Promise<readonly Job[]> {
    const pages = await Promise.all(
      [...this.disks.values()].map((disk) => disk.jobs.list({ limit: 100_000 })),
    );
    return pages.flatMap(({ jobs }) => jobs);
  }

  /** Every occurrence has one job, on the node that its id names; all nodes know the same. */
  async #audit(): Promise<void> {
    const told = `seed ${this.#options.seed}`;
    const jobs = await this.#jobs();
    const paused = await Promise.all([...this.disks.values()].map((disk) => disk.queues.isPaused("mail")));
    assert.equal(
      new Set(paused).size,
      1,
      `${told}: not all nodes have the queue alike: ${paused.join(", ")}`,
    );
    const possible = this.pauses.map((change) => change.paused);
    assert.ok(possible.includes(paused[0]!), `${told}: an acknowledged pause, or its end, is gone`);
    for (const [name, first] of this.acknowledged) {
      const [here, ...others] = await Promise.all(
        [...this.disks.values()].map((disk) => disk.schedules.get(name)),
      );
      assert.ok(here, `${told}: ${name} was acknowledged and is gone`);
      assert.ok(this.possible.get(name)!.has(here.payload), `${told}: ${name} has payload ${here.payload}`);
      for (const other of others)
        assert.equal(other?.payload, here.payload, `${told}: all nodes have ${name} alike`);
      const due = Math.floor((this.clock.now() - 2 * EVERY_MS) / EVERY_MS) * EVERY_MS;
      const found = Map.groupBy(
        jobs.filter(({ schedule }) => schedule === name),
        ({ runAt }) => runAt,
      );
      for (let at = first; at <= due; at += EVERY_MS) {
        const made = found.get(at) ?? [];
        const facts = `${told}: ${name} at ${(at - first) / EVERY_MS} s`;
        assert.equal(made.length, 1, `${facts} has ${made.map(({ id }) => id).join(", ") || "no job"}`);
        assert.equal(made[0]!.owner, made[0]!.id.slice(0, made[0]!.owner.length), facts);
        this.counts.occurrences++;
      }
      for (const [at, made] of found) assert.equal(made.length, 1, `${told}: ${name} at ${at} made two jobs`);
    }
  }
}

function definition(name: string, payload: string): ScheduleDefinition {
  return {
    name,
    timing: { kind: "every", everyMs: EVERY_MS, anchor: 0 },
    task: "work",
    payload,
    queue: "default",
    priority: 0,
    maxAttempts: 3,
    timeoutMs: null,
    missed: "run_all",
    missedMax: 10_000,
    overlap: "allow",
  };
}
