/**
 * Validates relations between settings, for example that the lease of a leader is longer than its renewal interval and
 * its margin.
 */

import { formatDuration } from "../values/duration.ts";
import type { Source } from "../sources/source.ts";
import type { SettingPath } from "../settings.ts";
import { hasPeers } from "./peer-checks.ts";
import { isChosen, describeMistake } from "../sources/source.ts";
import { isPostgresUrl } from "../values/store-url.ts";
import type { Value } from "../values/value.ts";

interface Relation {
  readonly longer: SettingPath;
  readonly than: readonly SettingPath[];
  readonly times: number;
  /** Just as long will do. */
  readonly orEqual?: true;
  /** Asked only in a cluster where it matters. */
  readonly onlyIf?: (values: ReadonlyMap<string, Value>) => boolean;
  readonly because: string;
}

const RELATIONS: readonly Relation[] = [
  {
    longer: "leader.lease",
    than: ["leader.renew", "leader.margin"],
    times: 1,
    because: "otherwise a leader stops trusting its lease before it renews it",
  },
  {
    longer: "worker.lease",
    than: ["worker.renew"],
    times: 2,
    because: "otherwise one late renewal loses the jobs that are running",
  },
  {
    longer: "drain.timeout",
    than: ["drain.cleanup"],
    times: 1,
    because: "otherwise handlers are told to stop before the drain begins",
  },
  {
    longer: "node.dead_after",
    than: ["node.heartbeat"],
    times: 2,
    orEqual: true,
    onlyIf: (values) => !hasPeers(values),
    because: "otherwise one late heartbeat looks like a death",
  },
  {
    longer: "node.dead_after",
    than: ["peers.health_interval", "peers.heartbeat_timeout"],
    times: 1,
    orEqual: true,
    onlyIf: hasPeers,
    because: "otherwise one slow answer looks like a death",
  },
];

/** The broken relations, each told where one of its values was written. */
export function relationMistakes(
  values: ReadonlyMap<string, Value>,
  sources: ReadonlyMap<string, Source>,
): string[] {
  return RELATIONS.flatMap((relation) => {
    const paths = [relation.longer, ...relation.than];
    // A value that could not be read has been told about already.
    if (!paths.every((path) => values.has(path)) || relation.onlyIf?.(values) === false) return [];
    const ms = (path: string): number => values.get(path) as number;
    const least = relation.than.reduce((sum, path) => sum + ms(path), 0) * relation.times;
    if (ms(relation.longer) > least || (relation.orEqual && ms(relation.longer) === least)) return [];

    const written = (path: string): string => `${path} (${formatDuration(ms(path))})`;
    const bound = `${relation.times === 1 ? "" : `${relation.times} × `}${relation.than.map(written).join(" + ")}`;
    const culprit = paths.find((path) => isChosen(sources.get(path)!)) ?? relation.longer;
    const must = `must be ${relation.orEqual ? "at least" : "longer than"} ${bound}`;
    const mistake =
      culprit === relation.longer
        ? `(${formatDuration(ms(culprit))}) ${must}: ${relation.because}`
        : `(${formatDuration(ms(culprit))}) is too long: ${written(relation.longer)} ${must}, ${relation.because}`;
    return [describeMistake(sources.get(culprit)!, culprit, mistake)];
  });
}

/** What a node whose store nobody shares cannot be, and what cannot be beside each other. */
export function fabricMistakes(
  values: ReadonlyMap<string, Value>,
  sources: ReadonlyMap<string, Source>,
): string[] {
  const store = values.get("store");
  const mistakes: string[] = [];
  const mistake = (path: SettingPath, text: string): void =>
    void mistakes.push(describeMistake(sources.get(path)!, path, text));
  if (values.get("etcd.url") && values.get("redis.url"))
    mistake("etcd.url", "does not go with redis.url: one of the two elects the leader; remove the other");
  if (typeof store !== "string" || isPostgresUrl(store)) return mistakes;
  if (values.get("redis.url"))
    mistake("redis.url", "needs a database beside it, which keeps the jobs: store: postgres://…");
  if (values.get("etcd.url"))
    mistake("etcd.url", "needs a database beside it, which keeps the jobs: store: postgres://…");
  if (values.get("dispatch.mode") === "push")
    mistake(
      "dispatch.mode",
      `cannot be push with the store ${store}: nobody else could take the jobs; leave it out`,
    );
  if (hasPeers(values)) return mistakes;
  const roles = values.get("roles") as readonly string[] | undefined;
  if (roles && !roles.includes("scheduler")) {
    mistake(
      "roles",
      `must have scheduler with the store ${store}: it belongs to this node alone, so nobody else could lead; add it, or name other nodes (nodes, join), or share a database with store: postgres://…`,
    );
  }
  if (((values.get("cluster.minimum_nodes") as number | undefined) ?? 1) > 1) {
    mistake(
      "cluster.minimum_nodes",
      `must be 1 with the store ${store}: it belongs to this node alone, so nobody can join; name other nodes (nodes, join), or share a database with store: postgres://…`,
    );
  }
  return mistakes;
}
