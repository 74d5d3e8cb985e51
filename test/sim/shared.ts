/**
 * The shared database of a simulated world: one store, the locks of the leader roles, the list of nodes, and topics. It
 * plays PostgreSQL: one clock of its own, every call a request and a reply over the link of the node that makes it, so
 * that either can be lost. A call without an answer is rejected with STORE_UNAVAILABLE, and may have been carried out.
 *
 * Elections are real: the elector of every node competes for a lock in the database, and the epochs are the store's.
 */

import { BatonError } from "../../src/core/errors.ts";
import type { NodeName } from "../../src/core/ids.ts";
import { heldBy, sameTerm, type LeaderRole, type Term } from "../../src/core/leadership/term.ts";
import type { NodeIdentity, NodeInfo, NodeStatus, OwnInfo } from "../../src/core/node.ts";
import type { Channels } from "../../src/channels/channels.ts";
import { MemoryChannels } from "../../src/channels/memory/channels.ts";
import type { Coordination, LeaseLock, Membership, NodeRequest } from "../../src/leadership/coordination.ts";
import { PendingRequest } from "../../src/leadership/coordination.ts";
import type { GivenFabric } from "../../src/node/node-options.ts";
import type { NodePlatform } from "../../src/node/platform.ts";
import type { Clock } from "../../src/platform/clock.ts";
import { Feed } from "../../src/platform/feed.ts";
import { Mutex } from "../../src/platform/loop.ts";
import { Lifecycle } from "../../src/platform/service.ts";
import type { Store } from "../../src/store/store.ts";
import { MemoryLeaseLock } from "../support/lock-memory.ts";
import { SimDisk } from "./disk.ts";
import type { World } from "./world.ts";

export const DATABASE_URL = "http://database";
const ANSWER_MS = 2_000;
const HEARTBEAT_MS = 1_000;
const DEAD_AFTER_MS = 5_000;

interface NodeRecord {
  readonly identity: NodeIdentity;
  readonly info: OwnInfo;
  status: NodeStatus;
  seenAt: number;
  request: NodeRequest | null;
}

type Methods = Record<string, (...given: never[]) => unknown>;

export class SharedDatabase {
  readonly disk = new SimDisk();
  readonly store: Store;
  readonly hub: MemoryChannels;
  readonly #world: World;
  readonly #locks = new Map<LeaderRole, DatabaseLock>();
  readonly #nodes = new Map<NodeName, NodeRecord>();
  /** Dead incarnations whose work was not recovered yet. */
  readonly #dead = new Map<string, NodeIdentity>();

  constructor(world: World) {
    this.#world = world;
    const { timeline, history, options } = world;
    const opened = this.disk.openStore(timeline);
    const store = options.bug?.store?.(opened, timeline) ?? opened;
    this.store = history.observe(store, "database");
    this.hub = new MemoryChannels({ clock: timeline });
  }

  lock(role: LeaderRole): DatabaseLock {
    let lock = this.#locks.get(role);
    if (!lock) this.#locks.set(role, (lock = new DatabaseLock(role, this.#world.timeline, this.store.terms)));
    return lock;
  }

  /**
   * What a node sends every second, and what it gets back. A request stays until the node says that it has heard it: the
   * reply that brings it may be lost.
   */
  async heartbeat(
    identity: NodeIdentity,
    info: OwnInfo,
    status: NodeStatus,
    heard: NodeRequest | null,
  ): Promise<{ readonly nodes: readonly NodeInfo[]; readonly request: NodeRequest | null }> {
    const before = this.#nodes.get(identity.name);
    if (before && before.identity.incarnation !== identity.incarnation)
      this.#dead.set(before.identity.incarnation, before.identity);
    const asked = before?.identity.incarnation === identity.incarnation ? before.request : null;
    const request = asked === heard ? null : asked;
    const seenAt = this.#world.timeline.monotonic();
    this.#nodes.set(identity.name, { identity, info, status, seenAt, request });
    return { nodes: this.#list(), request };
  }

  async ask(node: NodeName, request: NodeRequest): Promise<boolean> {
    const found = this.#nodes.get(node);
    if (!found || found.status === "dead") return false;
    found.request = request;
    return true;
  }

  async leave(identity: NodeIdentity): Promise<void> {
    const found = this.#nodes.get(identity.name);
    if (found?.identity.incarnation === identity.incarnation) found.status = "dead";
  }

  async findDead(fence: Term): Promise<readonly NodeIdentity[]> {
    await this.#check(fence);
    const since = this.#world.timeline.monotonic() - DEAD_AFTER_MS;
    for (const record of this.#nodes.values()) {
      if (record.seenAt >= since || record.status === "dead") continue;
      record.status = "dead";
      this.#dead.set(record.identity.incarnation, record.identity);
    }
    return [...this.#dead.values()];
  }

  async markRecovered(nodes: readonly NodeIdentity[], fence: Term): Promise<void> {
    await this.#check(fence);
    for (const { incarnation } of nodes) this.#dead.delete(incarnation);
  }

  #list(): readonly NodeInfo[] {
    const { timeline } = this.#world;
    return [...this.#nodes.values()]
      .map(({ identity, info, status, seenAt }) => {
        const lastSeenAt = timeline.now() - (timeline.monotonic() - seenAt);
        return { ...info, ...identity, status, lastSeenAt, alive: status !== "dead" };
      })
      .sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  async #check(fence: Term): Promise<void> {
    const newest = await this.store.terms.read(fence.role);
    if (newest && !sameTerm(newest, fence))
      throw new BatonError("STALE_EPOCH", `term ${fence.epoch} is over`);
  }
}

/** A lease in a row of the database, whose epochs are the store's. */
class DatabaseLock extends MemoryLeaseLock {
  readonly #terms: Store["terms"];
  /** One statement on the row at a time. */
  #row: Promise<unknown> = Promise.resolve();

  constructor(role: LeaderRole, clock: Clock, terms: Store["terms"]) {
    super(role, clock);
    this.#terms = terms;
  }

  override acquire(candidate: NodeIdentity, ttlMs: number): Promise<Term | null> {
    const acquired = this.#row.then(async () => {
      const valid = this.valid();
      if (valid && !heldBy(valid, candidate)) return null;
      return this.hold(await this.#terms.grant(this.role, candidate), ttlMs);
    });
    this.#row = acquired;
    return acquired;
  }
}

/** No hint ever comes: they may be lost, and everything works without them. */
function silence(signal: AbortSignal): AsyncIterable<void> {
  return new Feed<void>().follow(signal);
}

/** The database as the node at `url` uses it. */
export function sharedFabric(
  world: World,
  url: string,
  clock: Clock,
  step: () => Promise<void>,
): GivenFabric {
  const { network } = world;
  const database = world.database!;
  const unavailable = async (): Promise<never> => {
    await clock.sleep(ANSWER_MS);
    throw new BatonError("STORE_UNAVAILABLE", "the database is not available: no answer in time");
  };
  const remote =
    <Given extends unknown[], Answer>(call: (...given: Given) => Promise<Answer>) =>
    async (...given: Given): Promise<Answer> => {
      await step();
      if (!(await network.crosses(url, DATABASE_URL))) return unavailable();
      const answer = await Promise.allSettled([call(...given)]);
      if (!(await network.crosses(DATABASE_URL, url))) {
        network.counts.lostReplies++;
        return unavailable();
      }
      await clock.turn();
      await step();
      if (answer[0].status === "rejected") throw answer[0].reason;
      return answer[0].value;
    };
  const remotely = <Subject extends object>(subject: Subject): Subject =>
    new Proxy(subject, {
      get: (target, key) => {
        const found: unknown = Reflect.get(target, key);
        if (typeof found !== "function") return found;
        return remote(
          (...given: never[]) => (target as Methods)[key as string]!(...given) as Promise<unknown>,
        );
      },
    });
  return {
    openStore: async () => {
      const ports = [
        "jobs",
        "queues",
        "schedules",
        "terms",
        "samples",
        "agents",
        "journal",
        "access",
      ] as const;
      const close = async (): Promise<void> => {};
      return {
        ...(Object.fromEntries(
          ports.map((port) => [port, remotely(database.store[port])]),
        ) as unknown as Store),
        guarantees: { name: "sim", durability: "power loss", shared: true, keepsTokenFile: false },
        problem: null,
        purge: remote(database.store.purge),
        close,
        [Symbol.asyncDispose]: close,
      };
    },
    shared: (p) => {
      const coordination = new SharedCoordination(p, database, remote);
      return { coordination, channels: sharedTopics(database.hub, clock, remote) };
    },
  };
}

type Remote = <Given extends unknown[], Answer>(
  call: (...given: Given) => Promise<Answer>,
) => (...given: Given) => Promise<Answer>;

class SharedCoordination extends Lifecycle implements Coordination {
  readonly kind = "sim";
  readonly membership: Membership;
  readonly #p: NodePlatform;
  readonly #database: SharedDatabase;
  readonly #remote: Remote;
  readonly #locks = new Map<LeaderRole, LeaseLock>();
  readonly #pending = new PendingRequest();
  #nodes: readonly NodeInfo[] = [];
  #status: NodeStatus = "joining";
  /** The request that was received here and is not cleared in the database yet. */
  #heard: NodeRequest | null = null;
  readonly #turns = new Mutex();
  #stopped = new AbortController();

  constructor(p: NodePlatform, database: SharedDatabase, remote: Remote) {
    super();
    this.#p = p;
    this.#database = database;
    this.#remote = remote;
    this.membership = {
      nodes: () => this.#nodes,
      setStatus: async (status) => {
        this.#status = status;
        await this.#beat().catch(() => {}); // the next one tells
      },
      ask: remote((node: NodeName, request: NodeRequest) => database.ask(node, request)),
      requests: (signal) => this.#pending.follow(signal),
      displaced: () => null,
      findDead: remote((fence: Term) => database.findDead(fence)),
      markRecovered: remote((nodes: readonly NodeIdentity[], fence: Term) =>
        database.markRecovered(nodes, fence),
      ),
    };
  }

  lock(role: LeaderRole): LeaseLock {
    let lock = this.#locks.get(role);
    if (!lock) {
      const there = this.#database.lock(role);
      lock = {
        acquire: this.#remote((who: NodeIdentity, ttlMs: number) => there.acquire(who, ttlMs)),
        renew: this.#remote((term: Term, ttlMs: number) => there.renew(term, ttlMs)),
        release: this.#remote((term: Term) => there.release(term)),
        read: this.#remote(() => there.read()),
        tenure: this.#remote(() => there.tenure()),
        released: silence,
      };
      this.#locks.set(role, lock);
    }
    return lock;
  }

  notes(): readonly string[] {
    return [];
  }

  protected async onStart(): Promise<void> {
    this.#stopped = new AbortController();
    this.#status = "joining";
    await this.#beat();
    void this.#beats(this.#stopped.signal);
  }

  protected async onStop(): Promise<void> {
    this.#stopped.abort();
    await this.#remote(() => this.#database.leave(this.#p.identity))().catch(() => {});
  }

  async #beats(signal: AbortSignal): Promise<void> {
    for (;;) {
      await this.#p.clock.sleep(HEARTBEAT_MS, signal);
      if (signal.aborted) return;
      await this.#beat().catch(() => {}); // the next one tries again
    }
  }

  /** One behind the other, so that the answer of the last one is what we remember. */
  #beat(): Promise<void> {
    return this.#turns.run(async () => {
      const { identity, info } = this.#p;
      const beat = this.#remote(() => this.#database.heartbeat(identity, info(), this.#status, this.#heard));
      const { nodes, request } = await beat();
      this.#nodes = nodes;
      this.#heard = request;
      if (request) this.#pending.put(request);
    });
  }
}

/** Topics reach every node whose link works. Queues are not used where workers take their own jobs. */
function sharedTopics(hub: MemoryChannels, clock: Clock, remote: Remote): Channels {
  const none = (): never => {
    throw new Error("this fabric has no queues");
  };
  return {
    kind: "sim",
    shared: true,
    notifiesOnSubmit: false,
    limits: [],
    send: none,
    consume: none,
    publish: remote((topic: string, messages: Parameters<Channels["publish"]>[1]) =>
      hub.publish(topic, messages),
    ),
    subscribe: (topic, handler) =>
      hub.subscribe(topic, (message) => {
        void clock.turn().then(() => handler(message));
      }),
    start: async () => {},
    stop: async () => {},
    [Symbol.asyncDispose]: async () => {},
  };
}
