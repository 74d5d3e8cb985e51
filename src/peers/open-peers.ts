/** Opens the coordination of nodes that have no shared store. */

import { BullyCoordination, type BullyOptions } from "./bully/coordination.ts";
import type { PeerPlatform } from "./bully/peer-state.ts";
import { StandaloneCoordination } from "../leadership/standalone/coordination.ts";

/** The peers together are the lock of the scheduler; each node leads the other roles by itself. */
export function openPeers(platform: PeerPlatform, options: BullyOptions): BullyCoordination {
  const { info, terms } = options;
  return new BullyCoordination(platform, new StandaloneCoordination({ ...platform, info, terms }), options);
}

export { JoinServer, type JoinServerOptions } from "./bully/joining/join-server.ts";
export type { BullyCoordination, BullyOptions } from "./bully/coordination.ts";
export type { PeerSource } from "./bully/peer-list.ts";
