/** Opens the backend that the options name. Code above the store knows only store.ts. */

import type { Clock } from "../platform/clock.ts";
import type { PostgresOptions } from "../platform/drivers/postgres/postgres.ts";
import { MemoryStore } from "./memory/store.ts";
import { openPostgresStore } from "./postgres/store.ts";
import { openSqliteStore } from "./sqlite/store.ts";
import type { Store } from "./store.ts";

export type StoreOptions =
  | { readonly kind: "memory"; readonly clock: Clock }
  /** `dir`: the directory of the file. */
  | { readonly kind: "sqlite"; readonly dir: string; readonly clock: Clock }
  | ({ readonly kind: "postgres" } & PostgresOptions);

/** The store is open: the file is locked or the database was reached, and the tables are those of this version. */
export async function openStore(options: StoreOptions): Promise<Store> {
  switch (options.kind) {
    case "memory":
      return new MemoryStore(options);
    case "sqlite":
      return openSqliteStore(options);
    case "postgres":
      return openPostgresStore(options);
  }
}
