/** Several owners in one process, with a store and channels between them that can fail for one of them at a time. */

import type { TestContext } from "node:test";
import type { Message } from "../../../../src/channels/channels.ts";
import { MemoryChannels } from "../../../../src/channels/memory/channels.ts";
import type { Assignment, Receipt, StatusReport } from "../../../../src/channels/messages.ts";
import { queues, topics } from "../../../../src/channels/channel-names.ts";
import type { LeaseId, NodeName } from "../../../../src/core/ids.ts";
import type { NodeIdentity, NodeInfo } from "../../../../src/core/node.ts";
import type { Term } from "../../../../src/core/leadership/term.ts";
import type { OwnerSettings } from "../../../../src/push/ownership/owner-context.ts";
import { silentLog, type Log } from "../../../../src/platform/log.ts";
import { dispatchRequest, newJob } from "../../../support/job-builders.ts";
import { ManualClock } from "../../../support/manual-clock.ts";
import { seededRandom } from "../../../support/seeded-random.ts";
import { memoryStore, type MemoryStore } from "../../../support/memory-store.ts";
import type { AssignmentId, Ownership } from "../../../../src/store/ownership.ts";
import type { Outcome, Run } from "../../../../src/store/store.ts";
import { OwnerNode, SETTINGS } from "./owner-node.ts";

export { OwnerNode, SETTINGS } from "./owner-node.ts";

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
  /** Queues of which a message failed for the second time: while it rests, others overtake it. */
  readonly overtaken = new Set<string>();
  readonly #random = seededRandom(1);
  #term: Term | null = null;
  #reports = 0;

  constructor() {
    this.clock = new ManualClock();
    this.store = memoryStore({ clock: this.clock });
    this.bus = new MemoryChannels({ clock: this.clock });
  }

  static async open(t: TestContext): Promise<OwnershipWorld> {
    const world = new OwnershipWorld();
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
    const wanted = Array.from({ length: jobs }, () => newJob({}, this.#random));
    await this.store.jobs.submit(wanted, author);
    const request = dispatchRequest({ limit: jobs, size });
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

type Named<Name extends string> = Readonly<Record<Name, OwnerNode>> & { readonly world: OwnershipWorld };

/** A world in which these nodes have come, one after the other. */
export async function owners<Name extends string>(t: TestContext, ...names: Name[]): Promise<Named<Name>> {
  const world = await OwnershipWorld.open(t);
  const nodes: Record<string, OwnerNode> = {};
  for (const name of names) nodes[name] = await world.node(name);
  return { ...(nodes as Record<Name, OwnerNode>), world };
}
