/** Leader locks of several nodes on a real server, for the contracts and for tests of one backend. */

import type { LeaderLocks } from "../../src/leadership/coordination.ts";
import { Elector, type ElectorSettings } from "../../src/leadership/elector.ts";
import type { LeaderRole } from "../../src/core/leadership/term.ts";
import type { NodeIdentity } from "../../src/core/node.ts";
import type { PostgresCoordinationOptions } from "../../src/leadership/postgres/coordination.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { ManualClock } from "./manual-clock.ts";
import { systemRandom } from "../../src/platform/random.ts";
import type { TermStore } from "../../src/store/store.ts";
import { candidate, OWN_INFO } from "./lock-candidates.ts";
import { MemoryTerms } from "./lock-terms.ts";
import { ROLE, type LockWorld } from "./lock-world.ts";

interface Reached {
  /** Through which address the server is reached, if not directly. */
  readonly url?: string;
  readonly terms?: TermStore;
}

type NodeOptions = Omit<PostgresCoordinationOptions, "url">;
export type MemberOptions = Partial<NodeOptions> & Reached;
export type GivenOptions = NodeOptions & Reached;

/** A node that stands for the role. */
export interface Stander<Member extends LeaderLocks = LeaderLocks> extends AsyncDisposable {
  readonly identity: NodeIdentity;
  readonly coordination: Member;
  readonly elector: Elector;
}

export function electorOf(
  identity: NodeIdentity,
  coordination: LeaderLocks,
  settings: ElectorSettings,
  role: LeaderRole = ROLE,
): Elector {
  const lock = coordination.lock(role);
  return new Elector({ lock, identity, role, clock: systemClock, random: systemRandom, settings });
}

/** Nodes that are stopped with their cluster. */
export abstract class LockCluster<Member extends LeaderLocks> implements AsyncDisposable {
  readonly #members: Member[] = [];

  protected abstract open(given: GivenOptions): Member;

  /** A node that was not started yet. */
  member(name: string, options: MemberOptions = {}): Member {
    const { identity = candidate(name, systemRandom.uuid()), info = () => OWN_INFO } = options;
    const member = this.open({ clock: systemClock, random: systemRandom, ...options, identity, info });
    this.#members.push(member);
    return member;
  }

  async start(name: string, options: MemberOptions = {}): Promise<Member> {
    const member = this.member(name, options);
    await member.start();
    return member;
  }

  /** Its elector ends before its coordination does. */
  async stander(
    name: string,
    settings: ElectorSettings,
    options: MemberOptions = {},
  ): Promise<Stander<Member>> {
    const identity = candidate(name, systemRandom.uuid());
    const coordination = await this.start(name, { identity, ...options });
    const elector = electorOf(identity, coordination, settings);
    await elector.start();
    return { identity, coordination, elector, [Symbol.asyncDispose]: () => elector.stop() };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#members.map((member) => member.stop()));
  }
}

/** A cluster with a prefix of its own, and terms that outlive what its server forgets. */
export abstract class PrefixedCluster<Server, Member extends LeaderLocks> extends LockCluster<Member> {
  readonly server: Server;
  readonly prefix: string;
  readonly terms: TermStore;

  static #clusters = 0;

  constructor(server: Server, terms: TermStore = new MemoryTerms()) {
    super();
    this.server = server;
    this.prefix = `cluster-${++PrefixedCluster.#clusters}`;
    this.terms = terms;
  }

  abstract key(...parts: readonly string[]): string;
}

export interface ClusterLockOptions {
  readonly rounds: number;
  readonly url?: string;
  readonly time?: ManualClock;
  /** Lets it pass, if more than moving it has to happen. */
  readonly elapse?: (ms: number, ttlMs: number) => Promise<void>;
}

/** The clock by which leases are counted is moved by hand, so that one of a minute runs out at once. */
export async function openClusterLock(
  cluster: LockCluster<LeaderLocks>,
  options: ClusterLockOptions,
): Promise<LockWorld> {
  const { rounds, url, time = new ManualClock(), elapse = (ms) => time.advance(ms) } = options;
  const reached = url === undefined ? {} : { url };
  const ttlMs = 60_000;
  let lives = 0;
  const reopen = async () => (await cluster.start(`node-${++lives}`, { time, ...reached })).lock(ROLE);
  const close = () => cluster[Symbol.asyncDispose]();
  try {
    return { lock: await reopen(), ttlMs, rounds, elapse: (ms) => elapse(ms, ttlMs), reopen, close };
  } catch (error) {
    await close();
    throw error;
  }
}
