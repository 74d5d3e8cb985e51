/** Picks the keeper of the coordination port. Whatever is above it knows only the port. */

import type { Coordination } from "./coordination.ts";
import { PostgresCoordination, type PostgresCoordinationOptions } from "./postgres/postgres.ts";
import { openStandalone } from "./standalone/standalone.ts";
import type { StandaloneOptions } from "./standalone/standalone.ts";

export type CoordinationChoice =
  | ({ readonly kind: "standalone" } & StandaloneOptions)
  | ({ readonly kind: "postgres" } & PostgresCoordinationOptions);

export function openCoordination(choice: CoordinationChoice): Coordination {
  switch (choice.kind) {
    case "standalone":
      return openStandalone(choice);
    case "postgres":
      return new PostgresCoordination(choice);
  }
}
