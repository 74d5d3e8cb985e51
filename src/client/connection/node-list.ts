/** Decides which node is called next, by pure functions; and which addresses can be used. */

import { isLoopback } from "../../core/access/permissions.ts";
import { CallError } from "../client-error.ts";

export const DEFAULT_URL = "http://127.0.0.1:8420";

export interface NodeList {
  /** As they were given. They are never forgotten: a list out of a split cluster may lack them. */
  readonly seeds: readonly string[];
  /** The seeds and those that the cluster told of, in the order in which they are asked: who failed last stands last. */
  readonly known: readonly string[];
  /** Whoever answered last; it is asked again as long as it works. */
  readonly current: string | null;
  readonly leader: string | null;
}

/** Nodes that are remembered though nobody lists them any more. Fewer, and a list out of a split cluster makes us forget the rest. */
const NODES_MAX = 32;

export function nodeList(urls: readonly string[]): NodeList {
  const seeds = unique(urls);
  return { seeds, known: seeds, current: null, leader: null };
}

export interface NodeChoice {
  readonly asked: Pick<ReadonlySet<string>, "has">;
  readonly leader?: boolean;
  readonly hints?: readonly string[];
}

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

/** One or several, also as one text with commas between them. Throws BAD_URL for what is no address. */
export function addressesOf(given: string | readonly string[]): string[] {
  const parts = typeof given === "string" ? [given] : given;
  const urls = parts.flatMap((part) => part.split(",")).map((part) => part.trim());
  const bad = urls.find((url) => !isAddress(url));
  if (bad !== undefined || urls.length === 0) {
    throw new CallError(
      "BAD_URL",
      `"${bad ?? ""}" is not the address of a node; write it as ${DEFAULT_URL}, several with commas between them`,
    );
  }
  return unique(urls);
}

/** A loopback address is the cluster's own machine; ours only if we were given one. Given only https, the token does not go over http. */
export function usableOf(listed: readonly string[], seeds: readonly string[]): string[] {
  const near = seeds.some((url) => isLoopback(new URL(url).hostname));
  const secured = seeds.every((url) => url.startsWith("https:"));
  return unique(listed.filter(isAddress)).filter((url) => {
    const { protocol, hostname } = new URL(url);
    return (near || !isLoopback(hostname)) && (!secured || protocol === "https:");
  });
}

export function isAddress(url: string): boolean {
  return URL.canParse(url) && /^https?:$/.test(new URL(url).protocol);
}

/** Two spellings of one address are one node. */
function normal(url: string): string {
  return url.replace(/\/+$/, "");
}

export function unique(urls: readonly string[]): string[] {
  return [...new Set(urls.map(normal))];
}
