/** Opens the backend of the coordination interface. Callers know only the interface. */

import type { Coordination } from "./coordination.ts";
import { EtcdCoordination, type EtcdCoordinationOptions } from "./etcd/coordination.ts";
import { PostgresCoordination, type PostgresCoordinationOptions } from "./postgres/coordination.ts";
import { RedisCoordination, type RedisCoordinationOptions } from "./redis/coordination.ts";
import { openStandalone } from "./standalone/coordination.ts";
import type { StandaloneOptions } from "./standalone/coordination.ts";

export type CoordinationChoice =
  | ({ readonly kind: "standalone" } & StandaloneOptions)
  | ({ readonly kind: "postgres" } & PostgresCoordinationOptions)
  | ({ readonly kind: "redis" } & RedisCoordinationOptions)
  | ({ readonly kind: "etcd" } & EtcdCoordinationOptions);

export function openCoordination(choice: CoordinationChoice): Coordination {
  switch (choice.kind) {
    case "standalone":
      return openStandalone(choice);
    case "postgres":
      return new PostgresCoordination(choice);
    case "redis":
      return new RedisCoordination(choice);
    case "etcd":
      return new EtcdCoordination(choice);
  }
}
