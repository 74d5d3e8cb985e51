/** Opens the coordination of nodes that have no shared store. */

import { BullyCoordination, type BullyOptions } from "./bully/coordination.ts";
import { openStandalone } from "../leadership/standalone/coordination.ts";

/** The peers together are the lock of the scheduler; each node leads the other roles by itself. */
export function openPeers(options: Omit<BullyOptions, "local">): BullyCoordination {
  return new BullyCoordination({ ...options, local: openStandalone(options) });
}

export { JoinServer, type JoinServerOptions } from "./bully/joining/join-server.ts";
export type { BullyCoordination } from "./bully/coordination.ts";
export type { PeerSource } from "./bully/peer-list.ts";
