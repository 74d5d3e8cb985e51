/** Opens the backend of the coordination interface. Callers know only the interface, and a backend is loaded when it is used. */

import type { Coordination } from "./coordination.ts";
import type { EtcdCoordinationOptions } from "./etcd/coordination.ts";
import type { PostgresCoordinationOptions } from "./postgres/coordination.ts";
import type { RedisCoordinationOptions } from "./redis/coordination.ts";
import type { StandaloneOptions } from "./standalone/coordination.ts";

export type CoordinationChoice =
  | ({ readonly kind: "standalone" } & StandaloneOptions)
  | ({ readonly kind: "postgres" } & PostgresCoordinationOptions)
  | ({ readonly kind: "redis" } & RedisCoordinationOptions)
  | ({ readonly kind: "etcd" } & EtcdCoordinationOptions);

export async function openCoordination(choice: CoordinationChoice): Promise<Coordination> {
  switch (choice.kind) {
    case "standalone":
      return (await import("./standalone/coordination.ts")).openStandalone(choice);
    case "postgres":
      return new (await import("./postgres/coordination.ts")).PostgresCoordination(choice);
    case "redis":
      return new (await import("./redis/coordination.ts")).RedisCoordination(choice);
    case "etcd":
      return new (await import("./etcd/coordination.ts")).EtcdCoordination(choice);
  }
}
