/**
 * The name under which a node's connections are seen in `pg_stat_activity`: `baton/<incarnation>/<name>`. A successor
 * knows all connections of a paused leader by it, and people see whose they are.
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
