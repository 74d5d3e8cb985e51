/** Which fabric the settings pick: what keeps the jobs, and what holds the nodes together. */

import type { Settings } from "./settings.ts";
import { isPostgresUrl } from "./store-url.ts";

/**
 * `alone`: one node with its own store. `peers`: nodes with a store each, which know each other. `postgres`: nodes on
 * one database.
 */
export type Fabric = "alone" | "peers" | "postgres";

type Picks = Pick<Settings, "store" | "nodes" | "join" | "discover"> & {
  readonly manager: Pick<Settings["manager"], "addr">;
};

export function fabricOf(settings: Picks): Fabric {
  if (isPostgresUrl(settings.store)) return "postgres";
  const { nodes, join, discover, manager } = settings;
  const peers = Object.keys(nodes).length > 0 || join.length > 0 || discover !== "" || manager.addr !== "";
  return peers ? "peers" : "alone";
}

/** Whether the leader dispatches jobs, and not each worker takes its own. */
export function isPushed(
  settings: Pick<Settings, "store"> & {
    readonly redis: Pick<Settings["redis"], "url">;
    readonly dispatch: Pick<Settings["dispatch"], "mode">;
  },
): boolean {
  if (!isPostgresUrl(settings.store)) return false;
  const { mode } = settings.dispatch;
  return mode === "push" || (mode === "auto" && settings.redis.url !== "");
}
