/** Several owners in one process, with a store and channels between them that can fail for one of them at a time. */

import type { TestContext } from "node:test";
import type { Channels, Delivery, Message, Subscription } from "../../../src/channels/channels.ts";
import { MemoryChannels } from "../../../src/channels/memory/memory.ts";
import type { Assignment, Receipt, StatusReport } from "../../../src/channels/messages.ts";
import { queues, topics } from "../../../src/channels/names.ts";
import { BatonError } from "../../../src/core/errors.ts";
import { jobId, type LeaseId, type NodeName } from "../../../src/core/ids.ts";
import type { NodeIdentity, NodeInfo, NodeStatus } from "../../../src/core/node.ts";
import type { Term } from "../../../src/core/term.ts";
import { Owner, type OwnerSettings } from "../../../src/ownership/owner.ts";
import type { Clock } from "../../../src/platform/clock.ts";
import { silentLog, type Log } from "../../../src/platform/log.ts";
import { ManualClock } from "../../../src/platform/manual-clock.ts";
import { seededRandom } from "../../../src/platform/random.ts";
import { MemoryStore } from "../../../src/store/memory/memory.ts";
import type { AssignmentId, Ownership, OwnershipStore } from "../../../src/store/ownership.ts";
import type { Outcome, Run } from "../../../src/store/store.ts";

export const SETTINGS: OwnerSettings = {
  heartbeatMs: 1_000,
  ackMs: 5_000,
  tries: 3,
  orphanWaitMs: 30_000,
  hardMs: 60_000,
  orphanCheckMs: 30_000,
  rebalance: false,
  rebalanceMs: 10_000,
  rebalanceRatio: 2,
};

const WORKER = "worker-1" as NodeName;
const LEASE = "worker-1/lease" as LeaseId;
const LEASE_MS = 24 * 3_600_000;
const DONE: Outcome = { kind: "completed", result: "1" };

export interface Assigned {
  readonly id: AssignmentId;
  readonly runs: readonly Run[];
}

export class OwnershipWorld {
  readonly clock: ManualClock;
  readonly store: MemoryStore;
  readonly bus: MemoryChannels;
  readonly nodes: OwnerNode[] = [];
  readonly receipts: Receipt[] = [];
  /** Queues of which a message came a third time: from then on others may have overtaken it. */
  readonly overtaken = new Set<string>();
  readonly #random = seededRandom(1);
  #term: Term | null = null;
  #reports = 0;

  constructor() {
    this.clock = new ManualClock();
    this.store = new MemoryStore({ clock: this.clock });
    this.bus = new MemoryChannels({ clock: this.clock });
  }

  static async open(t: TestContext): Promise<OwnershipWorld> {
    const world = new OwnershipWorld();
    await world.store.start();
    await world.bus.start();
    world.bus.subscribe(topics.receipts(WORKER), ({ body }) => void world.receipts.push(body as Receipt));
    t.after(async () => {
      for (const node of world.nodes) node.crash();
      await world.bus.stop();
    });
    return world;
  }

  async node(name: string, settings: Partial<OwnerSettings> = {}, log: Log = silentLog): Promise<OwnerNode> {
    const node = new OwnerNode(this, name as NodeName, { ...SETTINGS, ...settings }, log);
    this.nodes.push(node);
    await node.owner.start();
    await this.rest();
    return node;
  }

  /** The leader's term; of somebody who is no owner unless told otherwise. */
  async term(leader: NodeIdentity = { name: "leader" as NodeName, incarnation: "leader-1" }): Promise<Term> {
    this.#term = await this.store.terms.grant("scheduler", leader);
    return this.#term;
  }

  /** Jobs that a worker runs, in assignments that nobody owns yet. */
  async dispatch(jobs: number, size = 1): Promise<Assigned[]> {
    const author = { node: WORKER, ownerEpoch: 0, leaderEpoch: 0 };
    const wanted = Array.from({ length: jobs }, () => ({
      id: jobId(WORKER, this.#random.timedUuid()),
      task: "work",
      queue: "default",
      priority: 0,
      payload: "null",
      delayMs: 0,
      runAt: null,
      maxAttempts: 3,
      timeoutMs: null,
      idempotencyKey: null,
    }));
    await this.store.jobs.submit(wanted, author);
    const request = {
      tasks: new Set(["work"]),
      queues: null,
      exceptQueues: new Set<string>(),
      limit: jobs,
      size,
      suspect: false,
    };
    const { assignments } = await this.store.ownership.dispatch(request, this.#term ?? (await this.term()));
    const runs = assignments.flatMap(({ id: assignment, jobs: these }) =>
      these.map(({ id, jobEpoch }) => ({ id, jobEpoch, assignment })),
    );
    await this.store.ownership.accept({
      author,
      worker: WORKER,
      lease: LEASE,
      leaseMs: LEASE_MS,
      opens: true,
      runs,
    });
    return assignments.map(({ id, jobs: these }) => ({
      id,
      runs: these.map((job) => ({ id: job.id, jobEpoch: job.jobEpoch, lease: LEASE })),
    }));
  }

  /** The same, and the nodes are told. */
  async assign(jobs: number, size = 1): Promise<Assigned[]> {
    const assigned = await this.dispatch(jobs, size);
    await this.announce(assigned);
    return assigned;
  }

  async announce(assigned: readonly Assigned[]): Promise<void> {
    const messages = assigned.map(({ id, runs }): Message => {
      const body: Assignment = {
        assignment: id,
        ownerEpoch: 0,
        jobs: runs.length,
        leaderEpoch: this.#term!.epoch,
        at: "",
      };
      return { key: `${id}`, body };
    });
    await this.bus.send(queues.assigned, messages);
    await this.rest();
  }

  /** A worker's word that these runs have ended; with a line of their log before, if given. */
  async finish(assignment: AssignmentId, runs: readonly Run[], line?: string): Promise<number> {
    const number = ++this.#reports;
    const logs = line === undefined ? [] : [{ at: 0, level: "info" as const, message: line }];
    const body: StatusReport = {
      assignment,
      worker: WORKER,
      incarnation: "life-1",
      number,
      reports: line === undefined ? [] : runs.map((run) => ({ run, logs, progress: null })),
      settlements: runs.map((run) => ({ run, outcome: DONE })),
    };
    await this.bus.send(queues.jobStatus(assignment), [{ key: "life-1", body }]);
    return number;
  }

  /** A worker's line of the log, of a run that goes on. */
  async say(assignment: AssignmentId, run: Run, message: string): Promise<void> {
    const body: StatusReport = {
      assignment,
      worker: WORKER,
      incarnation: "life-1",
      number: ++this.#reports,
      reports: [{ run, logs: [{ at: 0, level: "info", message }], progress: null }],
      settlements: [],
    };
    await this.bus.send(queues.jobStatus(assignment), [{ key: "life-1", body }]);
  }

  async lines(run: Run): Promise<string[]> {
    return (await this.store.jobs.logs(run.id, 0, 1_000)).map(({ message }) => message);
  }

  async statuses(runs: readonly Run[]): Promise<string[]> {
    return Promise.all(runs.map(async ({ id }) => (await this.store.jobs.get(id))!.status));
  }

  async read(assigned: readonly Assigned[]): Promise<readonly (Ownership | null)[]> {
    return this.store.ownership.read(assigned.map(({ id }) => id));
  }

  /** The names of those who own them, as the store says. */
  async owners(assigned: readonly Assigned[]): Promise<(string | null)[]> {
    return (await this.read(assigned)).map((row) => row?.owner?.name ?? null);
  }

  advance(ms: number): Promise<void> {
    return this.clock.advance(ms);
  }

  /** Lets everything that needs no time come to rest. */
  async rest(turns = 40): Promise<void> {
    for (let turn = 0; turn < turns; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
  }

  /** Moves time on until it is so. */
  async until(what: () => boolean | Promise<boolean>, withinMs: number): Promise<number> {
    for (let waitedMs = 0; ; waitedMs += 50) {
      await this.rest(10);
      if (await what()) return waitedMs;
      if (waitedMs >= withinMs) throw new Error(`not so within ${withinMs} ms`);
      await this.advance(50);
    }
  }

  members(): NodeInfo[] {
    return this.nodes.map((node) => node.info());
  }
}

interface Taken {
  readonly queue: string;
  readonly consume: () => Subscription;
  readonly die: () => void;
  subscription: Subscription;
}

const COMPETED: readonly string[] = [queues.assigned, queues.handoff];
const NOTHING: Subscription = { close: () => Promise.resolve() };

export class OwnerNode {
  readonly identity: NodeIdentity;
  readonly owner: Owner;
  status: NodeStatus = "active";
  #deaf = false;
  /** Messages and calls that this node does not get through, by name. */
  readonly faults = new Set<"acks" | "store" | "answers">();
  readonly counts = { own: 0, write: 0, events: 0, offers: 0, largestSend: 0, ackPublishes: 0 };
  readonly #world: OwnershipWorld;
  #dead = false;
  readonly #taken = new Set<Taken>();
  #duty: AbortController | null = null;

  constructor(world: OwnershipWorld, name: NodeName, settings: OwnerSettings, log: Log) {
    this.#world = world;
    this.identity = { name, incarnation: `${name}-${world.nodes.length}` };
    this.owner = new Owner({
      ownership: this.#ownership(world.store.ownership),
      channels: this.#channels(world.bus),
      membership: { nodes: () => world.members() },
      identity: this.identity,
      clock: world.clock as Clock,
      random: seededRandom(world.nodes.length),
      log,
      status: () => this.status,
      leaderEpoch: () => null,
      dispatches: () => [],
      settings,
    });
  }

  get jobs(): number {
    return this.owner.jobs;
  }

  /** Lives, and takes neither assignments nor offers. */
  set deaf(deaf: boolean) {
    if (deaf === this.#deaf) return;
    this.#deaf = deaf;
    for (const taken of this.#taken) {
      if (!COMPETED.includes(taken.queue)) continue;
      if (deaf) void taken.subscription.close();
      else taken.subscription = taken.consume();
    }
  }

  get dead(): boolean {
    return this.#dead;
  }

  drain(hurry = new AbortController()) {
    this.status = "draining";
    return this.owner.drain({ hurry: hurry.signal });
  }

  /** As a process dies: nothing of it is heard any more, and what it had in hand comes back. */
  crash(): void {
    if (this.#dead) return;
    this.#dead = true;
    this.#duty?.abort();
    for (const { subscription, die } of this.#taken) {
      void subscription.close();
      die();
    }
    void this.owner.stop().catch(() => {});
  }

  lead(term: Term): void {
    this.#duty?.abort();
    this.#duty = new AbortController();
    // As leader duties do it: a duty that fails ends here, and the test sees what is missing.
    void this.owner.orphanDuty(term, this.#duty.signal).catch(() => {});
  }

  info(): NodeInfo {
    return {
      ...this.identity,
      url: null,
      hostname: "here",
      address: null,
      httpPort: null,
      roles: ["scheduler"],
      capabilities: [],
      version: "0",
      status: this.#dead ? "dead" : this.status,
      startedAt: 0,
      lastSeenAt: 0,
      alive: !this.#dead,
      load: { jobs: 0, connections: 0, cpu: 0, memory: 0, loopLagMs: 0 },
    };
  }

  #ownership(store: OwnershipStore): OwnershipStore {
    return new Proxy(store, {
      get: (target, name: keyof OwnershipStore) => {
        return async (...args: readonly unknown[]) => {
          this.#living();
          if (this.faults.has("store")) throw new BatonError("STORE_UNAVAILABLE", "the store is away");
          if (name === "own") this.counts.own++;
          if (name === "write") {
            this.counts.write++;
            this.counts.events += (args[0] as unknown[]).length;
          }
          const call = target[name] as (...given: readonly unknown[]) => Promise<unknown>;
          const answer = await call.apply(target, [...args]);
          if (this.faults.has("answers")) throw new BatonError("STORE_UNAVAILABLE", "the answer is lost");
          this.#living();
          return answer;
        };
      },
    });
  }

  #channels(bus: MemoryChannels): Channels {
    return {
      kind: "memory",
      start: () => Promise.resolve(),
      stop: () => Promise.resolve(),
      [Symbol.asyncDispose]: () => Promise.resolve(),
      send: async (queue, messages) => {
        this.#living();
        if (queue === queues.handoff) this.counts.offers += messages.length;
        this.counts.largestSend = Math.max(this.counts.largestSend, messages.length);
        await bus.send(queue, messages);
      },
      publish: async (topic, messages) => {
        this.#living();
        if (topic.startsWith("job.handoff.ack.")) {
          this.counts.ackPublishes++;
          if (this.faults.has("acks")) return;
        }
        await bus.publish(topic, messages);
      },
      consume: (queue, handler, options) => this.#consume(bus, queue, handler, options),
      subscribe: (topic, handler) =>
        bus.subscribe(topic, (message) => (this.#dead ? undefined : handler(message))),
    };
  }

  #consume(
    bus: MemoryChannels,
    queue: string,
    handler: (batch: readonly Delivery[]) => Promise<void>,
    options?: { readonly batchMax?: number },
  ): Subscription {
    const death = Promise.withResolvers<void>();
    death.promise.catch(() => {});
    const consume = (): Subscription =>
      bus.consume(
        queue,
        (batch) => {
          if (batch.some(({ deliveries }) => deliveries > 2)) this.#world.overtaken.add(queue);
          return Promise.race([handler(batch), death.promise]);
        },
        options,
      );
    const taken: Taken = {
      queue,
      consume,
      die: () => death.reject(new Error("the node is dead")),
      subscription: this.#deaf && COMPETED.includes(queue) ? NOTHING : consume(),
    };
    this.#taken.add(taken);
    return {
      close: async () => {
        this.#taken.delete(taken);
        await taken.subscription.close();
      },
    };
  }

  #living(): void {
    if (this.#dead) throw new BatonError("STOPPED", "the node is dead");
  }
}
