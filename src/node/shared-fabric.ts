/**
 * What a node has that shares its store with others: a database, which keeps the jobs and by default also elects and carries the
 * messages, or leaves both to a Redis beside it, or only the election to an etcd.
 */

import { openChannels } from "../channels/open.ts";
import type { Channels } from "../channels/channels.ts";
import type { Settings } from "../config/settings.ts";
import type { Coordination } from "../coordination/coordination.ts";
import { openCoordination } from "../coordination/open.ts";
import type { NodeIdentity, OwnInfo } from "../core/node.ts";
import type { Clock } from "../platform/clock.ts";
import { applicationName } from "../platform/drivers/postgres-name.ts";
import { PoolerCheck } from "../platform/drivers/postgres-pooler.ts";
import type { Log } from "../platform/log.ts";
import type { Random } from "../platform/random.ts";
import { openStore } from "../store/open.ts";
import type { Store, TermStore } from "../store/store.ts";

export interface SharedFabricOptions {
  readonly settings: Settings;
  readonly identity: NodeIdentity;
  readonly info: () => OwnInfo;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** Hints may have been missed. */
  readonly onGap: () => void;
}

export interface SharedFabric {
  readonly store: Store;
  readonly coordination: Coordination;
  readonly channels: Channels;
}

export function openSharedFabric(options: SharedFabricOptions): SharedFabric {
  const { settings, identity, info, clock, random, log, onGap } = options;
  const common = { clock, random, log };
  const database = {
    ...common,
    url: settings.store,
    schema: settings.postgres.schema,
    applicationName: applicationName(identity),
    pooler: new PoolerCheck({ url: settings.store, clock, applicationName: applicationName(identity) }),
  };
  const store = openStore({ kind: "postgres", ...database, connections: settings.postgres.connections });
  if (settings.redis.url === "") {
    const member = { identity, info, settings: settings.node };
    return {
      store,
      coordination:
        settings.etcd.url === ""
          ? openCoordination({ kind: "postgres", ...database, ...member })
          : openCoordination({
              kind: "etcd",
              ...common,
              ...settings.etcd,
              terms: termsOf(store),
              ...member,
            }),
      channels: openChannels({ kind: "postgres", ...database, onGap }),
    };
  }
  const redis = { ...common, ...settings.redis };
  return {
    store,
    coordination: openCoordination({
      kind: "redis",
      ...redis,
      terms: termsOf(store),
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

/** How one life of a node is called among the consumers of queues. */
export function consumerOf({ name, incarnation }: NodeIdentity): string {
  return `${name}.${incarnation}`;
}

/** The terms of a store that is not open yet. */
export function termsOf(store: Store): TermStore {
  return {
    grant: (role, candidate) => store.terms.grant(role, candidate),
    admit: (term) => store.terms.admit(term),
    read: (role) => store.terms.read(role),
  };
}
