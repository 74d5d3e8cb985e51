import type { NodeInfo } from "../core/node.ts";

/**
 * A cluster takes traffic once so many nodes have gathered. It is asked once, at the start of a node: a cluster that loses
 * nodes later goes on, because refusing work then would turn a small failure into a whole one.
 */
export function stillForming(nodes: readonly NodeInfo[], minimumNodes: number): string | null {
  const gathered = nodes.filter(
    ({ status, alive }) => alive && (status === "joining" || status === "active"),
  ).length;
  if (gathered >= minimumNodes) return null;
  return `${gathered} of ${minimumNodes} nodes have gathered`;
}
