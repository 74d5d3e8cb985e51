/**
 * The order of placement. New jobs are placed in turn on the nodes that can take them, in the order of their names. A
 * job with a key goes to the node that the key and the names alone determine, so that a repeated submit through another
 * node finds the first job.
 */

import { type NodeInfo, type NodeRole, acceptsWork } from "./node.ts";

export interface Wants {
  readonly role: NodeRole;
  readonly tasks: readonly string[];
}

/**
 * In the order given. Nodes that cannot run the work are used only if no node can: where each node has its own store,
 * such a job waits there until that node is restarted.
 */
export function willing(nodes: readonly NodeInfo[], wants: Wants): readonly NodeInfo[] {
  const healthy = nodes.filter((node) => acceptsWork(node) && node.alive);
  const able = healthy.filter((node) => canRun(node, wants));
  return able.length > 0 ? able : healthy;
}

export function canRun(node: NodeInfo, { role, tasks }: Wants): boolean {
  return node.roles.includes(role) && tasks.every((task) => node.capabilities.includes(task));
}

/** Rotated to the one at this position. */
export function inTurn<Item>(items: readonly Item[], position: number): readonly Item[] {
  if (items.length === 0) return items;
  const first = position % items.length;
  return first === 0 ? items : [...items.slice(first), ...items.slice(0, first)];
}

/**
 * In an order that depends only on names and key: a node that leaves moves no keys but its own, and every node finds
 * the same order.
 */
export function byKey<Item extends { readonly name: string }>(
  items: readonly Item[],
  key: string,
): readonly Item[] {
  const scored = items.map((item) => ({ item, score: score(`${item.name}\n${key}`) }));
  scored.sort((a, b) => b.score - a.score || (a.item.name < b.item.name ? -1 : 1));
  return scored.map(({ item }) => item);
}

/** FNV-1a with the final steps of murmur, without which keys that differ in the last letter would stay together. */
function score(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
