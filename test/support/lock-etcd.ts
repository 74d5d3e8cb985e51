/** Coordination on a real etcd, for its contracts and for what only it must keep. */

import { EtcdCoordination } from "../../src/coordination/etcd/etcd.ts";
import type { MembershipSettings } from "../../src/coordination/registered-membership.ts";
import type { NodeIdentity, OwnInfo } from "../../src/core/node.ts";
import { systemClock, type Clock } from "../../src/platform/clock.ts";
import type { Log } from "../../src/platform/log.ts";
import { ManualClock } from "../../src/platform/manual-clock.ts";
import { systemRandom } from "../../src/platform/random.ts";
import type { TermStore } from "../../src/store/store.ts";
import type { EtcdServer } from "./etcd-server.ts";
import { candidate } from "./lock-candidates.ts";
import { OWN_INFO } from "./lock-postgres.ts";
import { MemoryTerms } from "./lock-terms.ts";
import { ROLE, type LockWorld } from "./lock-world.ts";

export interface EtcdMemberOptions {
  readonly identity?: NodeIdentity;
  readonly settings?: Partial<MembershipSettings>;
  readonly info?: () => OwnInfo;
  readonly log?: Log;
  /** Instead of our own, where leases are counted. */
  readonly time?: Clock;
  /** Through which addresses etcd is reached, if not directly. */
  readonly url?: string;
  readonly terms?: TermStore;
}

/** One cluster: a prefix of its own, terms that outlive what etcd forgets, and nodes that are stopped with it. */
export class EtcdCluster implements AsyncDisposable {
  readonly server: EtcdServer;
  readonly prefix: string;
  readonly terms: TermStore;
  readonly #members: EtcdCoordination[] = [];

  static #clusters = 0;

  constructor(server: EtcdServer, terms: TermStore = new MemoryTerms()) {
    this.server = server;
    this.prefix = `cluster-${++EtcdCluster.#clusters}`;
    this.terms = terms;
  }

  /** A node that was not started yet. */
  member(name: string, options: EtcdMemberOptions = {}): EtcdCoordination {
    const { identity = candidate(name, systemRandom.uuid()), info = () => OWN_INFO, ...rest } = options;
    const { prefix, terms } = this;
    const given = { url: this.server.url(), prefix, terms, identity, info };
    const member = new EtcdCoordination({ ...given, clock: systemClock, random: systemRandom, ...rest });
    this.#members.push(member);
    return member;
  }

  async start(name: string, options: EtcdMemberOptions = {}): Promise<EtcdCoordination> {
    const member = this.member(name, options);
    await member.start();
    return member;
  }

  key(...parts: readonly string[]): string {
    return [this.prefix, ...parts].join("/");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#members.map((member) => member.stop()));
  }
}

/**
 * Lets hand-moved time pass for etcd's own leases too: time stands still between two steps, so a key that was written since the last
 * one was renewed in this very instant, and one whose time is over loses its lease as if it had run out.
 */
export class LeaseTime {
  readonly #cluster: EtcdCluster;
  readonly #time: ManualClock;
  readonly #renewed = new Map<string, { readonly revision: number; readonly at: number }>();

  constructor(cluster: EtcdCluster, time: ManualClock) {
    this.#cluster = cluster;
    this.#time = time;
  }

  async pass(ms: number, ttlMs: number): Promise<void> {
    const { server } = this.#cluster;
    const leaders = await server.entries(this.#cluster.key("leader", ""));
    for (const { key, revision } of leaders) {
      if (this.#renewed.get(key)?.revision !== revision)
        this.#renewed.set(key, { revision, at: this.#time.now() });
    }
    await this.#time.advance(ms);
    for (const { key, lease } of leaders) {
      if (this.#time.now() - this.#renewed.get(key)!.at >= ttlMs) await server.revoke(lease);
    }
  }
}

/** The clock by which leases are counted is moved by hand, so that one of a minute runs out at once. */
export async function openEtcdLock(server: EtcdServer, rounds: number): Promise<LockWorld> {
  const cluster = new EtcdCluster(server);
  const time = new ManualClock();
  const leases = new LeaseTime(cluster, time);
  const ttlMs = 60_000;
  let lives = 0;
  const reopen = async () => (await cluster.start(`node-${++lives}`, { time })).lock(ROLE);
  try {
    return {
      lock: await reopen(),
      ttlMs,
      rounds,
      elapse: (ms) => leases.pass(ms, ttlMs),
      reopen,
      close: () => cluster[Symbol.asyncDispose](),
    };
  } catch (error) {
    await cluster[Symbol.asyncDispose]();
    throw error;
  }
}
