/**
 * What a node has that shares its store with others: a database, which keeps the jobs and by default also elects and carries the
 * messages, or leaves both to a Redis beside it, or only the election to an etcd.
 */

import { openChannels } from "./channels/open.ts";
import type { Channels } from "./channels/channels.ts";
import { sharesStore } from "./config/fabric.ts";
import type { Settings } from "./config/settings.ts";
import type { Coordination } from "./coordination/coordination.ts";
import { openCoordination } from "./coordination/open.ts";
import { hasCode } from "./core/errors.ts";
import type { NodeIdentity, OwnInfo } from "./core/node.ts";
import type { Clock } from "./platform/clock.ts";
import type { PostgresOptions } from "./platform/drivers/postgres.ts";
import { applicationName } from "./platform/drivers/postgres-name.ts";
import { PoolerCheck } from "./platform/drivers/postgres-pooler.ts";
import type { Log } from "./platform/log.ts";
import type { Random } from "./platform/random.ts";
import type { Store } from "./store/store.ts";

export interface SharedFabricOptions {
  readonly settings: Settings;
  readonly identity: NodeIdentity;
  readonly info: () => OwnInfo;
  readonly store: Store;
  /** Of the store, whose pooler was checked already. */
  readonly connection: Omit<PostgresOptions, "url" | "schema">;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** Hints may have been missed. */
  readonly onGap: () => void;
}

export interface SharedFabric {
  readonly coordination: Coordination;
  readonly channels: Channels;
}

export function openSharedFabric(options: SharedFabricOptions): SharedFabric {
  const { settings, identity, info, store, connection, clock, random, log, onGap } = options;
  const common = { clock, random, log };
  const { terms } = store;
  const database = {
    ...common,
    ...connection,
    url: settings.store,
    schema: settings.postgres.schema,
  };
  if (settings.redis.url === "") {
    const member = { identity, info, settings: settings.node };
    return {
      coordination:
        settings.etcd.url === ""
          ? openCoordination({ kind: "postgres", ...database, ...member })
          : openCoordination({
              kind: "etcd",
              ...common,
              ...settings.etcd,
              terms,
              ...member,
            }),
      channels: openChannels({ kind: "postgres", ...database, onGap }),
    };
  }
  const redis = { ...common, ...settings.redis };
  return {
    coordination: openCoordination({
      kind: "redis",
      ...redis,
      terms,
      identity,
      info,
      settings: settings.node,
    }),
    channels: openChannels({
      kind: "redis",
      ...redis,
      name: applicationName(identity),
      consumer: consumerOf(identity),
      onGap,
    }),
  };
}

/** How a node connects to its database, for the store and for what else uses it. */
export function databaseConnection(
  { store, postgres }: Settings,
  identity: NodeIdentity,
  clock: Clock,
): Omit<PostgresOptions, "url" | "schema"> {
  const name = applicationName(identity);
  const pooler = new PoolerCheck({ url: store, clock, applicationName: name });
  return { applicationName: name, pooler, connections: postgres.connections, clock };
}

/** How one life of a node is called among the consumers of queues. */
export function consumerOf({ name, incarnation }: NodeIdentity): string {
  return `${name}.${incarnation}`;
}

/** Calls until it succeeds, or fails for another reason than a store that cannot be reached. */
export type Patience = <T>(call: () => Promise<T>) => Promise<T>;

const STORE_RETRY_MS = 500;

/** A database may come after its nodes, and may go away again between two of the services that need it. */
export function patience(options: {
  readonly settings: Settings;
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
}): Patience {
  const { settings, clock, log, signal } = options;
  const giveUpAt = clock.monotonic() + settings.postgres.waitMs;
  let logged = false;
  return async (call) => {
    for (;;) {
      try {
        return await call();
      } catch (error) {
        const passing = hasCode(error, "STORE_UNAVAILABLE") && sharesStore(settings);
        if (!passing || clock.monotonic() >= giveUpAt || signal.aborted) throw error;
        if (!logged) log.warn({ err: error }, "the store is not available yet; trying again");
        logged = true;
        await clock.sleep(STORE_RETRY_MS, signal);
      }
    }
  };
}
