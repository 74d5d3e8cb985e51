/**
 * The peer set of a cluster that nodes join and leave.
 *
 * The leader changes the set by one node at a time, so that a majority before and a majority after a change always
 * share a node. The set is numbered by the epoch of the leader and a counter. A candidate whose set is older than the
 * voter's gets no promise, so an election cannot lose a set that a majority has stored. Before its first change, a
 * leader stores the set that it found under its own epoch: otherwise changes begun by two leaders could have majorities
 * that share no node.
 */

import type { NodeName } from "../ids.ts";

export interface SetNumber {
  readonly epoch: number;
  readonly count: number;
}

export interface PeerSet extends SetNumber {
  /** Made when the cluster was founded, so that two clusters that meet by mistake do not mix. */
  readonly cluster: string;
  readonly members: Readonly<Record<string, string>>;
  /**
   * The number of the set with which each member joined, as text; none for the founder. A member that was removed and
   * joined again has another one.
   */
  readonly entries?: Readonly<Record<string, string>> | undefined;
  /** Newest first, so that they can be told. */
  readonly removed: readonly RemovedIncarnation[];
}

export interface RemovedIncarnation {
  readonly name: string;
  readonly incarnation: string;
  /** By request, or because it was silent for too long. The latter may return by itself. */
  readonly why: "removed" | "forgotten";
}

/** Enough for those that return late; more only makes messages longer. */
const REMOVED_MAX = 50;

export function compareSets(a: SetNumber, b: SetNumber): number {
  return a.epoch - b.epoch || a.count - b.count;
}

export function foundSet(cluster: string, name: NodeName, address: string): PeerSet {
  return { cluster, epoch: 0, count: 1, members: { [name]: address }, removed: [] };
}

/** The same under another leader's epoch. */
export function renumbered(set: PeerSet, epoch: number): PeerSet {
  return { ...set, epoch, count: set.count + 1 };
}

export function withMember(set: PeerSet, name: NodeName, address: string): PeerSet | null {
  if (isMember(set, name) && set.members[name] === address) return null;
  const count = set.count + 1;
  const removed = set.removed.filter((life) => life.name !== name);
  const entry = isMember(set, name) ? entryOf(set, name) : `${set.epoch}.${count}`;
  const entries = { ...set.entries, [name]: entry };
  return { ...set, count, members: { ...set.members, [name]: address }, entries, removed };
}

export function withoutMember(set: PeerSet, life: RemovedIncarnation): PeerSet | null {
  if (!isMember(set, life.name)) return null;
  const { [life.name]: _, ...members } = set.members;
  const { [life.name]: _entry, ...entries } = set.entries ?? {};
  const others = set.removed.filter((one) => one.name !== life.name);
  return { ...set, count: set.count + 1, members, entries, removed: [life, ...others].slice(0, REMOVED_MAX) };
}

/** A node may be called `constructor`. */
export function isMember(set: PeerSet, name: string): boolean {
  return Object.hasOwn(set.members, name);
}

/** See `PeerSet.entries`; empty for the founder. */
export function entryOf({ entries = {} }: PeerSet, name: string): string {
  return Object.hasOwn(entries, name) ? entries[name]! : "";
}

export function namesOf(set: PeerSet): readonly NodeName[] {
  return Object.keys(set.members).sort() as NodeName[];
}

/** Null if it was not removed, or if another incarnation of that name was. */
export function removalOf(set: PeerSet, name: string, incarnation: string): RemovedIncarnation["why"] | null {
  const life = set.removed.find((one) => one.name === name);
  if (!life || (life.incarnation !== "" && life.incarnation !== incarnation)) return null;
  return life.why;
}
