/** Opens the coordination of nodes that have no shared store. */

import { BullyCoordination, type BullyOptions } from "./bully/bully.ts";
import { openStandalone } from "./standalone/standalone.ts";

/** The peers together are the lock of the scheduler; each node leads the other roles by itself. */
export function openPeers(options: Omit<BullyOptions, "local">): BullyCoordination {
  return new BullyCoordination({ ...options, local: openStandalone(options) });
}

export { JoinServer, type JoinServerOptions } from "./bully/join-server.ts";
export type { BullyCoordination } from "./bully/bully.ts";
export type { PeerSource } from "./bully/peer-list.ts";
