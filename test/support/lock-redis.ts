/** Coordination on a real Redis, for its contracts and for what only it must keep. */

import type { MembershipSettings } from "../../src/coordination/registered-membership.ts";
import { RedisCoordination } from "../../src/coordination/redis/redis.ts";
import type { NodeIdentity, OwnInfo } from "../../src/core/node.ts";
import { systemClock, type Clock } from "../../src/platform/clock.ts";
import type { Log } from "../../src/platform/log.ts";
import { ManualClock } from "../../src/platform/manual-clock.ts";
import { systemRandom } from "../../src/platform/random.ts";
import type { TermStore } from "../../src/store/store.ts";
import { candidate } from "./lock-candidates.ts";
import { OWN_INFO } from "./lock-postgres.ts";
import { MemoryTerms } from "./lock-terms.ts";
import { ROLE, type LockWorld } from "./lock-world.ts";
import type { RedisServer } from "./redis-server.ts";

export interface RedisMemberOptions {
  readonly identity?: NodeIdentity;
  readonly settings?: Partial<MembershipSettings>;
  readonly info?: () => OwnInfo;
  readonly log?: Log;
  /** Instead of that of Redis. */
  readonly time?: Clock;
  /** Through which address Redis is reached, if not directly. */
  readonly url?: string;
  readonly terms?: TermStore;
}

/** One cluster: a prefix of its own, terms that outlive what Redis forgets, and nodes that are stopped with it. */
export class RedisCluster implements AsyncDisposable {
  readonly server: RedisServer;
  readonly prefix: string;
  readonly terms: TermStore;
  readonly #members: RedisCoordination[] = [];

  static #clusters = 0;

  constructor(server: RedisServer, terms: TermStore = new MemoryTerms()) {
    this.server = server;
    this.prefix = `cluster-${++RedisCluster.#clusters}`;
    this.terms = terms;
  }

  /** A node that was not started yet. */
  member(name: string, options: RedisMemberOptions = {}): RedisCoordination {
    const { identity = candidate(name, systemRandom.uuid()), info = () => OWN_INFO, ...rest } = options;
    const { prefix, terms } = this;
    const given = { url: this.server.url(), prefix, terms, identity, info };
    const member = new RedisCoordination({ ...given, clock: systemClock, random: systemRandom, ...rest });
    this.#members.push(member);
    return member;
  }

  async start(name: string, options: RedisMemberOptions = {}): Promise<RedisCoordination> {
    const member = this.member(name, options);
    await member.start();
    return member;
  }

  key(...parts: readonly string[]): string {
    return `{${this.prefix}}:coordinator:${parts.join(":")}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#members.map((member) => member.stop()));
  }
}

/** The clock of Redis is moved by hand, so that a lease of a minute runs out at once. */
export async function openRedisLock(server: RedisServer, rounds: number): Promise<LockWorld> {
  const cluster = new RedisCluster(server);
  const time = new ManualClock();
  let lives = 0;
  const reopen = async () => (await cluster.start(`node-${++lives}`, { time })).lock(ROLE);
  try {
    return {
      lock: await reopen(),
      ttlMs: 60_000,
      rounds,
      elapse: (ms) => time.advance(ms),
      reopen,
      close: () => cluster[Symbol.asyncDispose](),
    };
  } catch (error) {
    await cluster[Symbol.asyncDispose]();
    throw error;
  }
}
