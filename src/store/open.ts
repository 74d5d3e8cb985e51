/** Picks the keeper of the store port. Whatever is above it knows only the port. */

import type { Clock } from "../platform/clock.ts";
import { openMemoryStore } from "./memory/memory.ts";
import { SqliteStore } from "./sqlite/sqlite.ts";
import type { Store } from "./store.ts";

export interface StoreChoice {
  readonly kind: "sqlite" | "memory";
  /** Where an embedded store keeps its file. */
  readonly dir: string;
  readonly clock: Clock;
}

export function openStore({ kind, dir, clock }: StoreChoice): Store {
  switch (kind) {
    case "sqlite":
      return new SqliteStore({ dir, clock });
    case "memory":
      return openMemoryStore({ clock });
  }
}
