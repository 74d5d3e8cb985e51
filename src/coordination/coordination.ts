/**
 * The coordination port: who is in the cluster, and who leads.
 *
 * A keeper supplies membership and, for each leader role, a `LeaseLock`; the only election loop is `elector.ts`.
 *
 * What it does not promise: that there is one leader at every instant. A paused leader may believe in its term after
 * another was granted the next one. That is harmless because the store compares epochs in the transaction of each
 * write (see store.ts); the trust window (core/trust.ts) only makes it rare.
 */

import type { NodeName } from "../core/ids.ts";
import type { NodeIdentity, NodeInfo, NodeStatus } from "../core/node.ts";
import type { LeaderRole, Term } from "../core/term.ts";
import type { Service } from "../platform/service.ts";

export interface Coordination extends Service {
  readonly kind: string;
  /** One lock a role; the same object for the same role. */
  lock(role: LeaderRole): LeaseLock;
  readonly membership: Membership;
  /** What people should know of how leadership works here, for `baton status`; empty when all is as it should be. */
  notes(): readonly string[];
}

/** All that a backend owes to elections. Every call has a deadline of its own and rejects when it is exceeded. */
export interface LeaseLock {
  /** A new term with an epoch above every earlier one, or null while another holder's lease is valid. */
  acquire(candidate: NodeIdentity, ttlMs: number): Promise<Term | null>;
  /** False: this very term is over. Compares holder and epoch. */
  renew(term: Term, ttlMs: number): Promise<boolean>;
  /** Ends this term; touches no later one. */
  release(term: Term): Promise<void>;
  /** The current term, or null while nobody holds a valid one. */
  read(): Promise<Term | null>;
  /** The current term with its times, by the backend's clock. */
  tenure(): Promise<Tenure | null>;
  /**
   * Hints that asking now is worth it: for a standby that trying is (a release, a leader's broken connection), for a leader
   * that renewing is (its own connection broke). May be silent, may be wrong.
   */
  released(signal: AbortSignal): AsyncIterable<void>;
}

export interface Tenure extends Term {
  readonly acquiredAt: number;
  readonly leaseUntil: number;
}

export interface Membership {
  /** Everybody known, in the order of their names; ourselves among them. As last seen, so it never waits. */
  nodes(): readonly NodeInfo[];
  /** How we show ourselves from now on. */
  setStatus(status: NodeStatus): Promise<void>;

  /** Asks a node to drain, or to take work again; it hears of it soon. False when no living node has that name. */
  ask(node: NodeName, wish: NodeWish): Promise<boolean>;
  /** What was asked of this node, also before anybody followed; only the last of several wishes is told. */
  wishes(signal: AbortSignal): AsyncIterable<NodeWish>;

  /**
   * Takes a node out of the cluster, for good unless it joins again; the leader does it. False when no node has that name.
   * Left out where members are not for people to choose: a node alone, or nodes that share a database.
   */
  remove?(node: NodeName): Promise<boolean>;

  /**
   * Why we are in nobody's list though we run: taken for dead, and another life has our name. Such a node does not lead, since callers
   * would be sent to the other, and only a restart will help it. Null where it cannot happen, or is found out otherwise.
   */
  displaced(): string | null;

  /**
   * A leader's look at everybody: who has died is marked dead, under the fence of its term. Answers with those lives whose
   * work nobody has taken back yet, until `laidToRest` says so: a leader that dies half-way leaves them to the next.
   */
  findDead(fence: Term): Promise<readonly NodeIdentity[]>;
  laidToRest(lives: readonly NodeIdentity[], fence: Term): Promise<void>;
}

export type NodeWish = "drain" | "resume";

/** What the rest of the node sees of an election. */
export interface Leadership {
  /** Whoever leads, as last seen. */
  current(): Term | null;
  /** Our own term, only inside the trust window. */
  held(): Term | null;
  /** Our own term, or NOT_LEADER. */
  require(): Term;
  /** The lock does not answer us, so that what was last seen may be old; null while it answers. */
  silence(): LockSilence | null;
  /** Our own terms as they begin and end: a term, then null, and so on; in order, none skipped, none merged. */
  changes(signal: AbortSignal): AsyncIterable<Term | null>;
}

export interface LockSilence {
  /** Since the first of the questions that were not answered was sent. */
  readonly forMs: number;
  /** Of the last question. */
  readonly error: unknown;
}
