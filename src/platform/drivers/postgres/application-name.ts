/**
 * The name of a node's connections in `pg_stat_activity`: `baton/<incarnation>/<name>`. The next leader uses it to find
 * all connections of a paused leader, and people see which node a connection belongs to.
 */

import type { NodeIdentity } from "../../../core/node.ts";

/** The server keeps no more. A uuid leaves 20 for the node's name. */
const BYTES_MAX = 63;

export function applicationName({ name, incarnation }: NodeIdentity): string {
  return `${applicationPrefix(incarnation)}${name}`.slice(0, BYTES_MAX);
}

/** Common to all connections of one life of a node, and to no other's. */
export function applicationPrefix(incarnation: string): string {
  return `baton/${incarnation}/`.slice(0, BYTES_MAX);
}
