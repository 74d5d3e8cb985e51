/** The fabric that the settings select: the backend that stores the jobs, and the one that coordinates the nodes. */

import type { Settings } from "./settings.ts";
import { isPostgresUrl, sqliteFile } from "./values/secret-url.ts";
import type { PostgresOptions } from "../platform/drivers/postgres/postgres.ts";
import type { StoreOptions } from "../store/open-store.ts";

/** `alone`: one node with its own store. `peers`: nodes with a store each. `postgres`: nodes on one database. */
export type Fabric = "alone" | "peers" | "postgres";

export function fabricOf(
  settings: Pick<Settings, "store" | "nodes" | "join" | "discover" | "manager">,
): Fabric {
  if (isPostgresUrl(settings.store)) return "postgres";
  const { nodes, join, discover, manager } = settings;
  const peers = Object.keys(nodes).length > 0 || join.length > 0 || discover !== "" || manager.addr !== "";
  return peers ? "peers" : "alone";
}

export function isPushed(settings: Pick<Settings, "store" | "dispatch">): boolean {
  return isPostgresUrl(settings.store) && settings.dispatch.mode === "push";
}

export function storeOptions(
  { store, data, postgres: { schema } }: Pick<Settings, "store" | "data" | "postgres">,
  connection: Omit<PostgresOptions, "url" | "schema">,
): StoreOptions {
  if (isPostgresUrl(store)) return { kind: "postgres", url: store, schema, ...connection };
  const file = sqliteFile({ store, data });
  return file === null
    ? { kind: "memory", clock: connection.clock }
    : { kind: "sqlite", file, clock: connection.clock };
}
