/**
 * The second layer: store, coordination, channels and transport, as selected by the settings or given by a simulation.
 * The store is open when it is passed on; the lifecycle starts the others.
 */

import { httpProbe, reachability } from "../observe/reachability.ts";
import { openChannels } from "../channels/open-channels.ts";
import { fabricOf, storeOptions } from "../config/fabric.ts";
import type { Coordination } from "../leadership/coordination.ts";
import { openCoordination } from "../leadership/open-coordination.ts";
import { openStore } from "../store/open-store.ts";
import type { GivenFabric } from "./node-options.ts";
import type { ServiceList } from "./service-list.ts";
import type { NodePlatform } from "./platform.ts";

export type Backend = Awaited<ReturnType<typeof backend>>;

export async function backend(p: NodePlatform, list: ServiceList, given?: GivenFabric) {
  const { settings, identity, info, clock, log, state } = p;
  const fabric = fabricOf(settings);
  // Only the modules of the fabric in use are loaded.
  const postgres = fabric === "postgres" && !given ? await import("./backend-postgres.ts") : null;
  const database = postgres && postgres.databaseOf(p);
  const choice = storeOptions(settings, { ...database, clock, connections: settings.postgres.connections });
  const store = await list.open(() => given?.openStore() ?? openStore(choice));
  const { terms } = store;
  const peers =
    fabric === "peers" ? (await import("./backend-peers.ts")).peerBackend(p, terms, given?.network) : null;
  const shared = given?.shared?.(p) ?? (postgres && (await postgres.onDatabase(p, database!, terms)));
  const coordination: Coordination =
    peers?.coordination ??
    shared?.coordination ??
    (await openCoordination({ kind: "standalone", identity, clock, info, terms }));
  const probe = given?.network?.httpProbe ?? httpProbe(clock);
  const reach = reachability(p, () => coordination.membership.nodes(), probe);
  state.publish({ reach: () => reach.read() });
  return {
    store,
    coordination,
    membership: coordination.membership,
    reach,
    channels: shared?.channels ?? (await openChannels({ kind: "memory", clock, log })),
    /** No other node can open the store. */
    alone: fabric !== "peers" && !store.guarantees.shared,
    /** Only where each node has a store of its own. */
    peers,
  };
}
