/**
 * All settings, each declared once. The type of the settings, the names of environment variables and flags, the
 * validation and docs/configuration.md are derived from this table.
 */

import { NODE_NAME, THING_NAME } from "../core/ids.ts";
import { ACCESS_SETTINGS } from "./definitions/access-settings.ts";
import { AGENT_SETTINGS, CONTROLLER_SETTINGS } from "./definitions/controller-settings.ts";
import { CLUSTER_SETTINGS, ETCD_SETTINGS } from "./definitions/cluster-settings.ts";
import { HTTP_SETTINGS } from "./definitions/http-settings.ts";
import type { NodeMap } from "./values/node-map.ts";
import { OWNERSHIP_SETTINGS } from "./definitions/push-settings.ts";
import { PEER_SETTINGS } from "./definitions/peer-settings.ts";
import { TIMER_MAX } from "./definitions/setting-definition.ts";
import type { Setting } from "./definitions/setting-definition.ts";
import type { StoreSetting } from "./values/store-url.ts";

export type { Setting } from "./definitions/setting-definition.ts";

export const SETTINGS = [
  {
    path: "name",
    kind: "string",
    default: null,
    defaultIs: "the host name",
    flag: "--name",
    pattern: NODE_NAME,
    about: "Name of this node. It is the first part of the ids of jobs submitted here.",
  },
  {
    path: "data",
    kind: "path",
    default: ".baton",
    flag: "--data",
    about: "Directory of the embedded store. One node uses it at a time.",
  },
  {
    path: "store",
    kind: "store",
    default: "sqlite",
    flag: "--store",
    about:
      "Where jobs are kept: `sqlite` survives crashes and power loss, `memory` survives nothing, and with `postgres://user:password@host:5432/database` all nodes on that database are one cluster. Without a password in it, `PGPASSWORD` and `~/.pgpass` are looked at.",
  },
  {
    path: "tasks",
    kind: "paths",
    default: [],
    flag: "--tasks",
    about: "Directories of task modules. A file's name is its task's name.",
  },
  ...HTTP_SETTINGS,
  {
    path: "worker.concurrency",
    kind: "integer",
    default: 10,
    min: 0,
    max: 10_000,
    flag: "--concurrency",
    about: "How many jobs run at the same time on this node; 0 for a node that takes jobs but runs none.",
  },
  {
    path: "worker.queues",
    kind: "list",
    default: [],
    pattern: THING_NAME,
    about: "Queues that this node works on; empty for all.",
  },
  {
    path: "worker.lease",
    kind: "duration",
    default: "10s",
    min: "100ms",
    max: TIMER_MAX,
    about:
      "How long a claimed job stays with a worker that says nothing. The embedded store knows by its file lock that its process lives, and ignores this.",
    smaller:
      "A pause of the process (garbage collection, a suspended machine) loses jobs that are still running.",
  },
  {
    path: "worker.renew",
    kind: "duration",
    default: "2s",
    min: "10ms",
    max: TIMER_MAX,
    about: "How often a worker renews its lease. Also how soon it hears of a cancellation made elsewhere.",
    smaller: "More writes to the store while nothing happens.",
  },
  {
    path: "worker.prefetch_max",
    kind: "integer",
    default: 500,
    min: 1,
    max: 10_000,
    about: "Most jobs claimed in one step.",
    smaller: "Short jobs spend more of their time on claims.",
  },
  {
    path: "jobs.max_attempts",
    kind: "integer",
    default: 3,
    min: 1,
    max: 1_000,
    about: "How many attempts a job has, unless it says otherwise.",
  },
  {
    path: "jobs.timeout",
    kind: "duration",
    default: "1h",
    min: "1ms",
    max: TIMER_MAX,
    about: "Longest run of a job, unless it says otherwise.",
    smaller: "Long runs are stopped and counted as failures.",
  },
  {
    path: "jobs.interruptions_max",
    kind: "integer",
    default: 50,
    min: 0,
    max: 1_000_000,
    about: "How often drains may interrupt a job before it fails.",
    smaller: "A long job fails after a few deploys.",
  },
  {
    path: "jobs.crashes_max",
    kind: "integer",
    default: 3,
    min: 1,
    max: 1_000,
    about: "A job is quarantined when this many nodes have died while they ran it.",
    smaller: "A job is blamed for crashes that it did not cause.",
  },
  {
    path: "jobs.overdue_grace",
    kind: "duration",
    default: "30s",
    min: "1s",
    max: TIMER_MAX,
    about:
      "How long after its timeout a run may still be reported by the node that runs it, before the leader takes the job away.",
    smaller: "A run that its own node was about to stop is taken for one that got stuck, and may run twice.",
  },
  {
    path: "jobs.unstored_max",
    kind: "integer",
    default: 20_000,
    min: 1,
    max: 10_000_000,
    about:
      "Most jobs that a node holds while the store is busy with those before them; more are refused with `429` and `Retry-After`.",
    smaller: "Callers are sent away in a burst that the store would have taken.",
  },
  {
    path: "functions.timeout",
    kind: "duration",
    default: "30s",
    min: "1ms",
    max: TIMER_MAX,
    about:
      "How long a call of `POST /functions/{task}` waits for the result, unless the caller says otherwise.",
    smaller: "Callers are sent away with a job id while their result is on its way.",
  },
  {
    path: "retry.first_delay",
    kind: "duration",
    default: "1s",
    min: "0ms",
    max: TIMER_MAX,
    about: "Wait before the second attempt.",
    smaller: "All attempts are spent while the cause of the failure still lasts.",
  },
  {
    path: "retry.factor",
    kind: "number",
    default: 2,
    min: 1,
    max: 100,
    about: "How much longer each further wait is.",
  },
  {
    path: "retry.max_delay",
    kind: "duration",
    default: "5m",
    min: "0ms",
    max: TIMER_MAX,
    about: "Longest wait between attempts.",
  },
  {
    path: "retry.jitter",
    kind: "number",
    default: 0.25,
    min: 0,
    max: 1,
    about: "Share by which a wait is spread to both sides.",
    smaller: "Jobs that failed together come back together.",
  },
  ...CLUSTER_SETTINGS,
  ...PEER_SETTINGS,
  ...OWNERSHIP_SETTINGS,
  ...AGENT_SETTINGS,
  ...ACCESS_SETTINGS,
  ...ETCD_SETTINGS,
  ...CONTROLLER_SETTINGS,
  {
    path: "drain.timeout",
    kind: "duration",
    default: "25s",
    min: "0ms",
    max: TIMER_MAX,
    about:
      "How long a stopping node waits for running jobs. Keep it below what the supervisor grants (often 30s).",
    smaller: "More jobs are interrupted at each deploy.",
  },
  {
    path: "drain.cleanup",
    kind: "duration",
    default: "5s",
    min: "0ms",
    max: TIMER_MAX,
    about: "How long before the end of the drain running handlers are told to stop.",
    smaller: "Handlers cannot tidy up, and their jobs look like crashes.",
  },
  {
    path: "retention.completed",
    kind: "duration",
    default: "7d",
    min: "0ms",
    about: "How long completed jobs are kept with their results and logs.",
    smaller: "Results are gone before they are fetched, and idempotency keys are forgotten.",
  },
  {
    path: "retention.failed",
    kind: "duration",
    default: "30d",
    min: "0ms",
    about: "How long failed jobs are kept.",
    smaller: "Dead letters vanish before somebody looks at them.",
  },
  {
    path: "retention.cancelled",
    kind: "duration",
    default: "7d",
    min: "0ms",
    about: "How long cancelled jobs are kept.",
  },
  {
    path: "retention.journal",
    kind: "duration",
    default: "30d",
    min: "0ms",
    about:
      "How long the journal is kept: terms of leadership, nodes, refused writes, handoffs, who did what.",
  },
  {
    path: "log.level",
    kind: "enum",
    default: "info",
    values: ["debug", "info", "warn", "error", "silent"],
    flag: "--log-level",
    about: "Least level that is logged.",
  },
  {
    path: "log.format",
    kind: "enum",
    default: "auto",
    values: ["auto", "json", "pretty"],
    flag: "--log-format",
    about: "`auto` is pretty on a terminal and JSON elsewhere.",
  },
] as const satisfies readonly Setting[];

type Row = (typeof SETTINGS)[number];
export type SettingPath = Row["path"];

export const SETTING_BY_PATH: ReadonlyMap<string, Setting> = new Map(SETTINGS.map((row) => [row.path, row]));

/** `http.body_limit` is `BATON_HTTP__BODY_LIMIT`: two underscores part the levels, because one is part of names. */
export function environmentName(path: string): string {
  return `BATON_${path.toUpperCase().replaceAll(".", "__")}`;
}

/** Where a setting lies in `Settings`: camelCase, with its unit at the end. */
export function settingKey(setting: Setting): { readonly section: string | null; readonly key: string } {
  const [first, second] = setting.path.split(".") as [string, string?];
  const unit = setting.kind === "duration" ? "Ms" : setting.kind === "size" ? "Bytes" : "";
  const key = (second ?? first).replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()) + unit;
  return { section: second === undefined ? null : first, key };
}

// The same once more, for the compiler.

type Camel<Text extends string> = Text extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<Camel<Tail>>}`
  : Text;
type Unit<R extends Row> = R["kind"] extends "duration" ? "Ms" : R["kind"] extends "size" ? "Bytes" : "";
type Last<Path extends string> = Path extends `${string}.${infer Name}` ? Name : Path;
type Section<Path extends string> = Path extends `${infer Name}.${string}` ? Name : never;
type In<S extends string> = Extract<Row, { path: `${S}.${string}` }>;
type ValueOf<R extends Row> = R extends {
  kind: infer Kind extends "enum" | "list";
  values: readonly (infer Choice)[];
}
  ? Kind extends "enum"
    ? Choice
    : readonly Choice[]
  : R["kind"] extends "store"
    ? StoreSetting
    : R["kind"] extends "integer" | "number" | "duration" | "size"
      ? number
      : R["kind"] extends "list" | "paths" | "addresses"
        ? readonly string[]
        : R["kind"] extends "map"
          ? NodeMap
          : R["kind"] extends "boolean"
            ? boolean
            : string;
type Fields<R extends Row> = {
  readonly [Each in R as `${Camel<Last<Each["path"]>>}${Unit<Each>}`]: ValueOf<Each>;
};

/** All values, nested: `settings.leader.leaseMs`, `settings.http.bodyLimitBytes`, `settings.worker.concurrency`. */
export type Settings = Fields<Exclude<Row, { path: `${string}.${string}` }>> & {
  readonly [S in Section<SettingPath>]: Fields<In<S>>;
};
