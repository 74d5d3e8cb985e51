/**
 * The backends of nodes that share a database: it stores the jobs and by default also elects and carries the messages. With Redis, both are
 * left to Redis; with etcd, only the coordination is left to etcd.
 */

import type { Channels } from "../channels/channels.ts";
import { consumerName } from "../channels/channel-names.ts";
import { openChannels } from "../channels/open-channels.ts";
import type { Coordination } from "../leadership/coordination.ts";
import { openCoordination } from "../leadership/open-coordination.ts";
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

export async function onDatabase(
  { settings, identity, info, signal, clock, random, log }: Platform,
  database: Database,
  terms: TermStore,
): Promise<{ readonly coordination: Coordination; readonly channels: Channels }> {
  const common = { clock, random, log };
  const member = { identity, info, settings: settings.node };
  // Hints may have been missed.
  const onGap = (): void => signal.raise();
  if (settings.redis.url === "") {
    const { etcd } = settings;
    return {
      coordination:
        etcd.url === ""
          ? await openCoordination({ kind: "postgres", ...database, ...member })
          : await openCoordination({ kind: "etcd", ...common, ...etcd, terms, ...member }),
      channels: await openChannels({ kind: "postgres", ...database, onGap }),
    };
  }
  const redis = { ...common, ...settings.redis };
  const consumer = consumerName(identity);
  return {
    coordination: await openCoordination({ kind: "redis", ...redis, terms, ...member }),
    channels: await openChannels({
      kind: "redis",
      ...redis,
      name: database.applicationName,
      consumer,
      onGap,
    }),
  };
}
