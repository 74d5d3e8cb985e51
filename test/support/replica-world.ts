/** A few replica nodes that do as they are told: who leads, who is dead, who reaches whom. */

import type { NodeName } from "../../src/core/ids.ts";
import { jobId } from "../../src/core/ids.ts";
import type { Job } from "../../src/core/jobs/job.ts";
import type { ScheduleDefinition } from "../../src/core/schedules/schedule.ts";
import type { Term } from "../../src/core/leadership/term.ts";
import type { ReplicatedSchedulesOptions } from "../../src/peers/schedules/replicated-schedules.ts";
import { silentLog, type Log } from "../../src/platform/log.ts";
import { newJob, scheduleDefinition } from "./job-builders.ts";
import { ManualClock } from "./manual-clock.ts";
import { seededRandom } from "./seeded-random.ts";
import { memoryStore, type MemoryStore } from "./memory-store.ts";
import type { FireVerdict, Firing, NotedOccurrence } from "../../src/store/store.ts";
import { MemoryNetwork } from "./memory-network.ts";
import { memberInfo, nodeNames, ReplicaNode, urlOf } from "./replica-node.ts";

export const SECOND_MS = 1_000;

export class ReplicaWorld {
  readonly clock = new ManualClock();
  readonly network = new MemoryNetwork(this.clock);
  members: readonly NodeName[];
  /** Of those that have joined again; and what each node has on its disk about that. */
  readonly #entries = new Map<NodeName, string>();
  readonly #caughtUp = new Map<NodeName, string>();
  readonly disks = new Map<NodeName, MemoryStore>();
  readonly nodes = new Map<NodeName, ReplicaNode>();
  readonly warnings: string[] = [];
  /** Where jobs go, best first; those that drain. */
  targets: readonly NodeName[];
  readonly draining = new Set<NodeName>();
  readonly parts: Partial<ReplicatedSchedulesOptions> = {};
  readonly #random = seededRandom(3);
  readonly #duties: { readonly name: NodeName; readonly ending: AbortController }[] = [];
  #epoch = 0;

  private constructor(count: number) {
    this.members = nodeNames(count);
    this.targets = this.members;
  }

  static async with(
    count: number,
    body: (world: ReplicaWorld, ...names: NodeName[]) => Promise<void>,
  ): Promise<void> {
    const world = new ReplicaWorld(count);
    try {
      for (const name of world.members) await world.start(name);
      await body(world, ...world.members);
    } finally {
      for (const { ending } of world.#duties) ending.abort();
      await Promise.all([...world.nodes.values()].map((node) => node.stop()));
      await Promise.all([...world.disks.values()].map((disk) => disk.close()));
    }
  }

  /** Three nodes, of which the first leads and has put the schedule. */
  static led(body: (world: ReplicaWorld, ...names: NodeName[]) => Promise<void>): Promise<void> {
    return ReplicaWorld.with(3, async (world, leader, ...others) => {
      await world.elect(leader);
      await world.put(leader);
      await body(world, leader, ...others);
    });
  }

  /** With the disk that it had, or with an empty one. */
  async start(name: NodeName, wiped = false): Promise<void> {
    if (wiped || !this.disks.has(name)) {
      await this.disks.get(name)?.close();
      const empty = memoryStore({ clock: this.clock });
      this.disks.set(name, empty);
    }
    const caughtUp = this.#caughtUp;
    const parts: Partial<ReplicatedSchedulesOptions> = {
      voters: () => this.members.map((member) => memberInfo(member)),
      entry: (member) => this.#entries.get(member) ?? "",
      membership: {
        get caughtUp() {
          return caughtUp.get(name) ?? "";
        },
        catchUp: async (entry) => void caughtUp.set(name, entry),
      },
      targets: () => this.targets,
      accepts: () => !this.draining.has(name),
      ...this.parts,
    };
    const { members, network, clock } = this;
    const disk = this.disks.get(name)!;
    const log: Log = { ...silentLog, warn: (_, message) => void this.warnings.push(message) };
    const node = new ReplicaNode({ name, members, disk, network, clock, log, parts });
    this.nodes.set(name, node);
    await node.start();
  }

  async kill(name: NodeName): Promise<void> {
    this.depose(name);
    await this.nodes.get(name)!.stop();
  }

  /** The duty of the term runs unless told otherwise; firing is up to the test. */
  async elect(name: NodeName, options: { duty?: boolean } = {}): Promise<Term> {
    const term: Term = { role: "scheduler", leader: name, incarnation: "1", epoch: ++this.#epoch };
    const node = this.nodes.get(name)!;
    node.term = term;
    for (const other of this.nodes.values()) other.leader = term;
    if (options.duty ?? true) {
      const ending = new AbortController();
      this.#duties.push({ name, ending });
      void node.schedules.duty(term, ending.signal);
      await this.clock.advance(10);
    }
    return term;
  }

  depose(name: NodeName): void {
    this.nodes.get(name)!.term = null;
    for (const duty of this.#duties) if (duty.name === name) duty.ending.abort();
  }

  leave(name: NodeName): void {
    this.members = this.members.filter((member) => member !== name);
  }

  /** Again, with what it has on its disk. */
  join(name: NodeName): void {
    this.members = [...this.members, name];
    this.#entries.set(name, String(Number(this.#entries.get(name) ?? "") + 1));
  }

  isolate(name: NodeName, how: "silent" | "refused" = "silent"): void {
    for (const other of this.members) if (other !== name) this.network.cut(urlOf(name), urlOf(other), how);
  }

  async during<T>(promise: Promise<T>): Promise<T> {
    let settled = false;
    const watch = promise.then(
      () => (settled = true),
      () => (settled = true),
    );
    for (let waited = 0; !settled && waited < 60_000; waited += 50) await this.clock.advance(50);
    if (settled) await watch;
    return promise;
  }

  of(name: NodeName): ReplicaNode["schedules"] {
    return this.nodes.get(name)!.schedules;
  }

  put(name: NodeName, fields: Partial<ScheduleDefinition> = {}, nextAt = this.clock.now()) {
    return this.during(this.of(name).put(definition(fields), nextAt));
  }

  /** The occurrence that is due, and the next one a second later. */
  async fire(name: NodeName, fields: Partial<Firing> = {}): Promise<readonly FireVerdict[]> {
    const { schedules, term } = this.nodes.get(name)!;
    const schedule = fields.schedule ?? "tick";
    const at = (await this.during(schedules.leading.get(schedule)))!.nextAt!;
    const id = jobId(name, this.#random.timedUuid());
    const job = newJob({ id, payload: "1", runAt: at });
    const firing: Firing = {
      schedule,
      occurrences: [{ at, do: "fire", reason: null, job }],
      nextAt: at + SECOND_MS,
      expectedNextAt: at,
      overlap: "allow",
      ...fields,
    };
    const author = { node: name, ownerEpoch: 0, leaderEpoch: 0 };
    return this.during(schedules.fire(firing, author, term!));
  }

  /** Of all nodes: `node-b 3` is the job of the third second, on node-b. */
  async jobs(): Promise<string[]> {
    const start = Date.UTC(2026, 0, 1);
    const found: Job[] = [];
    for (const disk of this.disks.values()) found.push(...(await disk.jobs.list({ limit: 1_000 })).jobs);
    return found.map(({ owner, runAt }) => `${owner} ${Math.floor((runAt - start) / SECOND_MS)}`).sort();
  }

  async history(name: NodeName, schedule = "tick"): Promise<readonly NotedOccurrence[]> {
    return this.of(name).history(schedule, 100);
  }
}

export function definition(fields: Partial<ScheduleDefinition> = {}): ScheduleDefinition {
  const timing = { kind: "every", everyMs: SECOND_MS, anchor: 0 } as const;
  return scheduleDefinition({
    name: "tick",
    timing,
    payload: "1",
    missed: "run_all",
    missedMax: 100,
    ...fields,
  });
}
