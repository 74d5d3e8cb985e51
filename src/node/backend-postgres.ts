/**
 * The backends of nodes that share a database. It stores the jobs, and by default also coordinates the nodes and
 * carries their messages. Redis can replace it for both; etcd can replace it for coordination only.
 */

import type { Channels } from "../channels/channels.ts";
import { openChannels } from "../channels/open-channels.ts";
import type { Coordination } from "../leadership/coordination.ts";
import { openCoordination } from "../leadership/open-coordination.ts";
import type { NodeIdentity } from "../core/node.ts";
import { applicationName } from "../platform/drivers/postgres/application-name.ts";
import { PoolerCheck } from "../platform/drivers/postgres/pooler-check.ts";
import type { TermStore } from "../store/store.ts";
import type { Platform } from "./platform.ts";

export type Database = ReturnType<typeof databaseOf>;

/** How store, coordination and channels reach it. */
export function databaseOf({ settings, identity, clock, random, log }: Platform) {
  const { store: url, postgres } = settings;
  const name = applicationName(identity);
  const pooler = new PoolerCheck({ url, clock, applicationName: name });
  return { clock, random, log, url, schema: postgres.schema, applicationName: name, pooler };
}

export function onDatabase(
  { settings, identity, info, signal, clock, random, log }: Platform,
  database: Database,
  terms: TermStore,
): { readonly coordination: Coordination; readonly channels: Channels } {
  const common = { clock, random, log };
  const member = { identity, info, settings: settings.node };
  // Hints may have been missed.
  const onGap = (): void => signal.raise();
  if (settings.redis.url === "") {
    const { etcd } = settings;
    return {
      coordination:
        etcd.url === ""
          ? openCoordination({ kind: "postgres", ...database, ...member })
          : openCoordination({ kind: "etcd", ...common, ...etcd, terms, ...member }),
      channels: openChannels({ kind: "postgres", ...database, onGap }),
    };
  }
  const redis = { ...common, ...settings.redis };
  const consumer = consumerOf(identity);
  return {
    coordination: openCoordination({ kind: "redis", ...redis, terms, ...member }),
    channels: openChannels({ kind: "redis", ...redis, name: database.applicationName, consumer, onGap }),
  };
}

/** How one incarnation of a node is called among the consumers of queues. */
export function consumerOf({ name, incarnation }: NodeIdentity): string {
  return `${name}.${incarnation}`;
}
