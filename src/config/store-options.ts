/** The options of the store that the settings choose. */

import type { PostgresOptions } from "../platform/drivers/postgres/postgres.ts";
import type { StoreOptions } from "../store/open-store.ts";
import type { Settings } from "./settings.ts";
import { isPostgresUrl } from "./values/store-url.ts";

type StoreSettings = Pick<Settings, "store" | "data"> & {
  readonly postgres: Pick<Settings["postgres"], "schema">;
};

/** `connection` is for one that is reached over the network. */
export function storeOptions(
  { store, data, postgres: { schema } }: StoreSettings,
  connection: Omit<PostgresOptions, "url" | "schema">,
): StoreOptions {
  if (isPostgresUrl(store)) return { kind: "postgres", url: store, schema, ...connection };
  return { kind: store, dir: data, clock: connection.clock };
}
