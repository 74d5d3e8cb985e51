/** Picks the keeper of the store port. Whatever is above it knows only the port. */

import type { Clock } from "../platform/clock.ts";
import type { PostgresOptions } from "../platform/drivers/postgres.ts";
import { openMemoryStore } from "./memory/memory.ts";
import { PostgresStore } from "./postgres/postgres.ts";
import { SqliteStore } from "./sqlite/sqlite.ts";
import type { Store } from "./store.ts";

export type StoreChoice =
  | { readonly kind: "memory"; readonly clock: Clock }
  /** `dir`: where an embedded store keeps its file. */
  | { readonly kind: "sqlite"; readonly dir: string; readonly clock: Clock }
  | ({ readonly kind: "postgres" } & PostgresOptions);

export function openStore(choice: StoreChoice): Store {
  switch (choice.kind) {
    case "memory":
      return openMemoryStore(choice);
    case "sqlite":
      return new SqliteStore(choice);
    case "postgres":
      return new PostgresStore(choice);
  }
}
