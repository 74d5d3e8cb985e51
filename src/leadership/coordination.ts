/**
 * Coordination: the members of the cluster, and its leaders.
 *
 * A backend supplies membership and, for each leader role, a `LeaseLock`; the only election loop is `elector.ts`. Where
 * nodes share a database, their list is always there, also when Redis or etcd elects.
 *
 * Not guaranteed: that there is one leader at every instant. A paused leader may trust its term after another node was
 * granted the next one. That is harmless because the store compares epochs in the transaction of each write (see
 * store.ts); the trust window (core/leadership/trust-window.ts) only makes it rare.
 */

import type { NodeName } from "../core/ids.ts";
import type { NodeIdentity, NodeInfo, NodeStatus } from "../core/node.ts";
import type { LeaderRole, Term } from "../core/leadership/term.ts";
import { Feed } from "../platform/feed.ts";
import type { Service } from "../platform/service.ts";

export interface Coordination extends LeaderLocks {
  readonly membership: Membership;
}

export interface LeaderLocks extends Service {
  readonly kind: string;
  /** One lock for each role; the same object for the same role. */
  lock(role: LeaderRole): LeaseLock;
  /** For operators, in `baton status`; empty when nothing is wrong. */
  notes(): readonly string[];
}

/** Every call has a deadline of its own and rejects when it is exceeded. */
export interface LeaseLock {
  /** A new term with an epoch above every earlier one, or null while another holder's lease is valid. */
  acquire(candidate: NodeIdentity, ttlMs: number): Promise<Term | null>;
  /** False: this very term is over. Compares holder and epoch. */
  renew(term: Term, ttlMs: number): Promise<boolean>;
  /** Ends this term; touches no later one. */
  release(term: Term): Promise<void>;
  read(): Promise<Term | null>;
  /** The current term with its times, by the backend's clock. */
  tenure(): Promise<Tenure | null>;
  /** Hints that a standby should try now, or that a leader should renew now. May be silent, may be wrong. */
  released(signal: AbortSignal): AsyncIterable<void>;
  /** How long a standby need not ask again, because changes come as hints; left out, or 0, where they may be missed. */
  quietMs?(): number;
}

export interface Tenure extends Term {
  readonly acquiredAt: number;
  readonly leaseUntil: number;
}

export interface Membership {
  /** All known nodes, this one included, in the order of their names. As last seen, so it never waits. */
  nodes(): readonly NodeInfo[];
  /** How we show ourselves from now on. Never rejects: nodes that it does not reach find out by themselves. */
  setStatus(status: NodeStatus): Promise<void>;

  /**
   * Asks a node to drain, or to take work again; the request arrives soon. False when no live node has that name. Rejects with
   * NODE_UNREACHABLE when the request may have arrived and may not.
   */
  ask(node: NodeName, request: NodeRequest): Promise<boolean>;
  /** The requests to this node, also those from before the call; of several that wait only the last is delivered. */
  requests(signal: AbortSignal): AsyncIterable<NodeRequest>;

  /**
   * Takes a node out of the cluster, for good unless it joins again; the leader does it. False when no node has that name.
   * Left out where members are not for people to choose: a node alone, or nodes that share a database.
   */
  remove?(node: NodeName): Promise<boolean>;

  /**
   * Why this node is in no list though it runs: it was taken for dead, and another incarnation has its name. Such a node does not
   * lead, since callers would be sent to the other, and needs a restart. Null where it cannot happen, or is noticed otherwise.
   */
  displaced(): string | null;

  /**
   * Marks dead nodes as dead, under the fence of a leader's term. Returns the dead incarnations whose work was not recovered
   * yet, until `markRecovered` is called for them: a leader that dies half-way leaves them to the next.
   */
  findDead(fence: Term): Promise<readonly NodeIdentity[]>;
  markRecovered(nodes: readonly NodeIdentity[], fence: Term): Promise<void>;
}

export type NodeRequest = "drain" | "resume";

/** The last request to a node, until it is read. A newer request replaces an older one. */
export class PendingRequest {
  readonly #puts = new Feed<void>();
  #request: NodeRequest | null = null;

  put(request: NodeRequest): void {
    this.#request = request;
    this.#puts.push();
  }

  /** Every request goes to one follower. */
  async *follow(signal: AbortSignal): AsyncGenerator<NodeRequest> {
    for await (const _ of this.#puts.follow(signal, [undefined])) {
      if (signal.aborted) return;
      const request = this.#request;
      this.#request = null;
      if (request) yield request;
    }
  }
}

/**
 * A cluster takes traffic once so many nodes have gathered. Asked only at the start of a node: refusing work when nodes
 * are lost later would turn a small failure into a whole one.
 */
export function stillForming(nodes: readonly NodeInfo[], minimumNodes: number): string | null {
  const gathered = nodes.filter(
    ({ status, alive }) => alive && (status === "joining" || status === "active"),
  ).length;
  if (gathered >= minimumNodes) return null;
  return `${gathered} of ${minimumNodes} nodes have gathered`;
}

/** What the rest of the node sees of an election. */
export interface Leadership {
  /** The leader, as last seen. */
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
  readonly error: unknown;
}
