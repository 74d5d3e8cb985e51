/** Opens the backend that the options name. Code above the store knows only store.ts, and a backend is loaded when it is used. */

import type { Clock } from "../platform/clock.ts";
import type { PostgresOptions } from "../platform/drivers/postgres/postgres.ts";
import type { Store } from "./store.ts";

export type StoreOptions =
  /** Its data ends with `close`. */
  | { readonly kind: "memory"; readonly clock: Clock }
  | { readonly kind: "sqlite"; readonly file: string; readonly clock: Clock }
  | ({ readonly kind: "postgres" } & PostgresOptions);

/** The store is open: the file is locked or the database was reached, and the tables are those of this version. */
export async function openStore(options: StoreOptions): Promise<Store> {
  switch (options.kind) {
    case "memory":
      return (await import("./sqlite/store.ts")).openSqliteStore({ ...options, dir: null });
    case "sqlite":
      return (await import("./sqlite/store.ts")).openSqliteFile(options.file, options.clock);
    case "postgres":
      return (await import("./postgres/store.ts")).openPostgresStore(options);
  }
}
