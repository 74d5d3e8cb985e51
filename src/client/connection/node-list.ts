/**
 * Decides which node is called next: pure functions of the known nodes, the last one that answered, the leader, and the
 * order of the others.
 */

import { normal, unique, usableOf } from "./node-addresses.ts";

export interface NodeList {
  /** As they were given. They are never forgotten: a list out of a split cluster may lack them. */
  readonly seeds: readonly string[];
  /** The seeds and those that the cluster told of, in the order in which they are asked: who failed last stands last. */
  readonly known: readonly string[];
  /** Whoever answered last; it is asked again as long as it works. */
  readonly current: string | null;
  /** Whoever answered as leader last. */
  readonly leader: string | null;
}

/** Nodes that are remembered though nobody lists them any more. Fewer, and a list out of a split cluster makes us forget the rest. */
const NODES_MAX = 32;

export function nodeList(urls: readonly string[]): NodeList {
  const seeds = unique(urls);
  return { seeds, known: seeds, current: null, leader: null };
}

export interface NodeChoice {
  /** Those that were asked in this round. */
  readonly asked: Pick<ReadonlySet<string>, "has">;
  /** Only the leader does it. */
  readonly leader?: boolean;
  /** Whom a node has named, best first. */
  readonly hints?: readonly string[];
}

/** Null when all of them were asked. */
export function nextNode(list: NodeList, { asked, leader = false, hints = [] }: NodeChoice): string | null {
  const order = [...hints.map(normal), leader ? list.leader : list.current, ...list.known];
  return order.find((url) => url !== null && list.known.includes(url) && !asked.has(url)) ?? null;
}

export function worked(list: NodeList, url: string, asLeader: boolean): NodeList {
  if (asLeader) return list.leader === url ? list : { ...list, leader: url };
  return list.current === url ? list : { ...list, current: url };
}

/** It does not lead, or not any more; as a node it may be a good one. */
export function stoodBy(list: NodeList, url: string): NodeList {
  return list.leader === url ? { ...list, leader: null } : list;
}

/** A node that is silent would cost every round its time-out, were it among the first. */
export function failed(list: NodeList, url: string): NodeList {
  const { leader, current, known } = list;
  return {
    ...list,
    known: known.includes(url) ? [...known.filter((each) => each !== url), url] : known,
    current: current === url ? null : current,
    leader: leader === url ? null : leader,
  };
}

/** The cluster has told who belongs to it. */
export function learned(list: NodeList, listed: readonly string[]): NodeList {
  const wanted = new Set([...list.seeds, ...usableOf(listed, list.seeds)]);
  let room = NODES_MAX - wanted.size;
  const kept = list.known.filter((url) => wanted.has(url) || url === list.leader || room-- > 0);
  return { ...list, known: unique([...kept, ...wanted]) };
}

/** A node has named others, beside what is known. */
export function heardOf(list: NodeList, named: readonly string[]): NodeList {
  const more = usableOf(named, list.seeds).filter((url) => !list.known.includes(url));
  return more.length === 0 ? list : { ...list, known: [...list.known, ...more] };
}
