/**
 * The backends of nodes that share a database: it stores the jobs and the list of nodes, and elects and carries messages
 * unless Redis does, or etcd elects.
 */

import type { Channels } from "../channels/channels.ts";
import { consumerName } from "../channels/channel-names.ts";
import { openChannels } from "../channels/open-channels.ts";
import type { Coordination } from "../leadership/coordination.ts";
import { openCoordination } from "../leadership/open-coordination.ts";
import { applicationName } from "../platform/drivers/postgres/session.ts";
import { poolerCheck } from "../platform/drivers/postgres/pooler-check.ts";
import type { TermStore } from "../store/store.ts";
import type { NodePlatform } from "./platform.ts";

export type Database = ReturnType<typeof databaseOf>;

export function databaseOf({ settings, identity, clock, random, log }: NodePlatform) {
  const { store: url, postgres } = settings;
  const name = applicationName(identity);
  const pooler = poolerCheck({ url, clock, applicationName: name });
  return { clock, random, log, url, schema: postgres.schema, applicationName: name, pooler };
}

export async function onDatabase(
  { settings, identity, info, signal, clock, random, log }: NodePlatform,
  database: Database,
  terms: TermStore,
): Promise<{ readonly coordination: Coordination; readonly channels: Channels }> {
  const { redis, etcd, node } = settings;
  const member = { ...database, identity, info, settings: node };
  // Hints may have been missed.
  const onGap = (): void => signal.raise();
  if (redis.url === "") {
    return {
      coordination:
        etcd.url === ""
          ? await openCoordination({ kind: "postgres", ...member })
          : await openCoordination({ kind: "etcd", server: etcd, terms, ...member }),
      channels: await openChannels({ kind: "postgres", ...database, onGap }),
    };
  }
  return {
    coordination: await openCoordination({ kind: "redis", server: redis, terms, ...member }),
    channels: await openChannels({
      kind: "redis",
      clock,
      random,
      log,
      ...redis,
      name: database.applicationName,
      consumer: consumerName(identity),
      onGap,
    }),
  };
}
