/** Opens a backend of the coordination interface, which is loaded when it is used. */

import type { TermStore } from "../store/store.ts";
import type { Coordination, LeaderLocks } from "./coordination.ts";
import type { PostgresCoordinationOptions } from "./postgres/coordination.ts";
import type { StandaloneOptions } from "./standalone/coordination.ts";

/** A server that elects while PostgreSQL keeps the members; the store admits its terms. */
interface ElectingServer {
  readonly terms: TermStore;
  readonly server: { readonly url: string; readonly prefix?: string };
}

export type CoordinationChoice =
  | ({ readonly kind: "standalone" } & StandaloneOptions)
  | ({ readonly kind: "postgres" } & PostgresCoordinationOptions)
  | ({ readonly kind: "redis" | "etcd" } & PostgresCoordinationOptions & ElectingServer);

export async function openCoordination(choice: CoordinationChoice): Promise<Coordination> {
  if (choice.kind === "standalone")
    return new (await import("./standalone/coordination.ts")).StandaloneCoordination(choice);
  const { PostgresCoordination } = await import("./postgres/coordination.ts");
  return new PostgresCoordination(choice, choice.kind === "postgres" ? undefined : await openLocks(choice));
}

async function openLocks(
  choice: Extract<CoordinationChoice, { readonly kind: "redis" | "etcd" }>,
): Promise<LeaderLocks> {
  const options = { ...choice, ...choice.server };
  switch (choice.kind) {
    case "redis":
      return new (await import("./redis/locks.ts")).RedisLocks(options);
    case "etcd":
      return new (await import("./etcd/locks.ts")).EtcdLocks(options);
  }
}
