/**
 * What `createNode` takes. Every setting is an option of the same name in camel case (`http.body_limit` is `http.bodyLimit`), with the
 * value that a file would have; durations may be numbers of milliseconds, and sizes numbers of bytes.
 */

import { hostname } from "node:os";
import { loadSettings } from "../config/load-settings.ts";
import type { Found } from "../config/mistake.ts";
import { optionPath, type SettingOptions, SETTINGS, type Settings } from "../config/settings.ts";
import { BatonError, nearest } from "../core/errors.ts";
import { NODE_ROLES, type NodeRole } from "../core/node.ts";
import type { CodeSchedule } from "../jobs/schedules/schedule-declarations.ts";
import type { AnyTask, TaskContext } from "../jobs/tasks/task.ts";
import { createLog, type Log } from "../platform/log.ts";
import type { Random } from "../platform/random.ts";
import type { Telemetry } from "../platform/telemetry/telemetry.ts";
import type { FailedRun } from "./node-listeners.ts";

type Section<Name extends keyof SettingOptions> = NonNullable<SettingOptions[Name]>;
/** Those of one section, or the one value that is meant most often. */
type Short<Name extends keyof SettingOptions, Value> = Value | Section<Name>;

export type Middleware = (context: TaskContext, next: () => Promise<unknown>) => unknown;

/** Tasks, and folders of task modules; also the exports of a module that has several. */
export type TasksOption = string | readonly (string | AnyTask)[] | Readonly<Record<string, AnyTask>>;

export interface NodeOptions extends Omit<
  SettingOptions,
  "store" | "tasks" | "worker" | "http" | "dashboard" | "redis" | "etcd" | "log" | "roles"
> {
  /**
   * Where jobs are kept: `sqlite:./jobs.db`, `postgres://user:password@host/database`, or `memory` until the end of the process. A file
   * in the folder `.baton` unless told otherwise.
   */
  readonly store?: string;
  readonly tasks?: TasksOption;
  /** False: this node runs no jobs. */
  readonly worker?: Short<"worker", boolean>;
  /** Opens the API and the dashboard: `{ port: 8420 }`. Nothing listens unless told so. */
  readonly http?: Short<"http", boolean>;
  readonly dashboard?: Short<"dashboard", boolean>;
  /** `redis://…`, beside a store in PostgreSQL. */
  readonly redis?: Short<"redis", string>;
  readonly etcd?: Short<"etcd", string>;
  readonly roles?: readonly NodeRole[];
  /** Of each failed run here, whether the job is tried again or not. */
  readonly onError?: (error: Error, failed: FailedRun) => void;
  /** Around each run here, the first one outermost. The result of the handler stays unless one returns another. */
  readonly use?: readonly Middleware[];
  /** Of its tasks, in addition to those that stand in the tasks themselves. */
  readonly schedules?: readonly CodeSchedule[];
  /** The API of OpenTelemetry as the program has it (`batonjs/otel`); without it, the one that Baton finds. */
  readonly telemetry?: Telemetry;
  /** What the node itself has to say: a logger such as pino's, or `true` for lines on stdout. Nothing unless told otherwise. */
  readonly log?: boolean | Log | Section<"log">;
  /** True: reads `baton.yaml` and the environment first, as `baton start` does. Also the path of such a file. */
  readonly config?: boolean | string;
}

/** Options that are no settings. */
const OTHERS = ["tasks", "schedules", "onError", "use", "telemetry", "log", "config"] as const;
/** What a section may be in place of its settings, and which of them is meant then. */
const SHORT: Readonly<Record<string, string>> = {
  redis: "redis.url",
  etcd: "etcd.url",
  dashboard: "dashboard.enabled",
};
const BY_OPTION = new Map(SETTINGS.map((setting) => [optionPath(setting.path), setting]));
const SECTIONS = new Set(
  SETTINGS.filter(({ path }) => path.includes(".")).map(({ path }) => path.split(".", 1)[0]!),
);
const KNOWN = [
  ...new Set([...SECTIONS, ...[...BY_OPTION.keys()].filter((name) => !name.includes(".")), ...OTHERS]),
];
/** What is in the name after that of the host. */
const UNIQUE_LENGTH = 8;
const NAME_LENGTH_MAX = 63;

/** Throws BAD_OPTIONS, which names all options at fault. */
export function readOptions(options: NodeOptions, random: Pick<Random, "uuid">) {
  const { found, mistakes } = settingsIn(options);
  let settings: Settings | null = null;
  let field: string | undefined;
  try {
    settings = load(options, found, random);
  } catch (error) {
    if (!(error instanceof BatonError) || error.code !== "BAD_CONFIG") throw error;
    mistakes.push(
      ...(error.details["mistakes"] as readonly string[]).map((text) => ({
        field: error.details.field,
        text,
      })),
    );
  }
  const tasks = tasksIn(options.tasks, (at, text) => mistakes.push({ field: at, text: `${at} ${text}` }));
  checkOthers(options, (at, text) => mistakes.push({ field: at, text: `${at} ${text}` }));
  if (settings === null || mistakes.length > 0) {
    field = mistakes.find((mistake) => mistake.field !== undefined)?.field;
    const text = mistakes.map((mistake) => mistake.text).join("; ");
    throw new BatonError("BAD_OPTIONS", `createNode: ${text}`, {
      field,
      issues: mistakes.map((mistake) => ({ field: mistake.field ?? "", message: mistake.text })),
    });
  }
  return {
    settings: { ...settings, tasks: [...settings.tasks, ...tasks.folders] },
    tasks: tasks.given,
    listens: options.http !== undefined && options.http !== false,
    log: logOf(options.log, settings),
  };
}

interface OptionMistake {
  readonly field: string | undefined;
  readonly text: string;
}

function load(
  { config = false, ...options }: NodeOptions,
  found: readonly Found[],
  random: Pick<Random, "uuid">,
): Settings {
  const asStart = config !== false;
  const file = typeof config === "string" ? { configFile: config } : {};
  const { settings } = loadSettings({
    ...(asStart ? file : { configFile: null, environment: {} }),
    options: found,
    hostname: asStart || isAmongPeers(options) ? hostname() : uniqueName(random),
  });
  return settings;
}

/** Peers know each other by name, also after a restart. */
function isAmongPeers({ nodes, join, discover, manager }: NodeOptions): boolean {
  return [nodes, join, discover, manager].some((given) => given !== undefined);
}

/** Several processes on one machine, and several nodes in one process, share a database. */
function uniqueName(random: Pick<Random, "uuid">): string {
  const suffix = random.uuid().replaceAll("-", "").slice(-UNIQUE_LENGTH);
  return `${hostname().slice(0, NAME_LENGTH_MAX - UNIQUE_LENGTH - 1)}-${suffix}`;
}

function settingsIn(options: NodeOptions): { readonly found: Found[]; readonly mistakes: OptionMistake[] } {
  const found: Found[] = [];
  const mistakes: OptionMistake[] = [];
  const mistake = (field: string, rest: string): void =>
    void mistakes.push({ field, text: `${field} ${rest}` });
  const take = (option: string, value: unknown): void => {
    const setting = BY_OPTION.get(option);
    if (!setting) return mistake(option, unknownOption(option));
    if (value === undefined) return;
    found.push({
      path: setting.path,
      value: written(setting.kind, value),
      source: { from: "option", option },
    });
  };
  for (const [name, value] of Object.entries(options)) {
    if (name === "store" && value === undefined) {
      mistake(
        name,
        'is undefined; leave it out for a file in .baton, or give "memory", "sqlite:./jobs.db" or "postgres://…"',
      );
    } else if (
      value === undefined ||
      ((OTHERS as readonly string[]).includes(name) && !isSection(name, value))
    )
      continue;
    else if (!SECTIONS.has(name)) take(name, value);
    else if (isFields(value))
      for (const [inner, each] of Object.entries(value)) take(`${name}.${inner}`, each);
    else if (typeof value === "boolean" && (name === "worker" || name === "http")) continue;
    else if (name in SHORT)
      found.push({ path: SHORT[name]!, value, source: { from: "option", option: name } });
    else mistake(name, `must be an object such as { ${exampleIn(name)}: … }, not ${shown(value)}`);
  }
  // A node that runs no jobs does not ask to hear of them either.
  if (options.worker === false && options.roles === undefined) {
    const roles = NODE_ROLES.filter((role) => role !== "worker" && role !== "function");
    found.push({ path: "roles", value: roles, source: { from: "option", option: "worker" } });
  }
  return { found, mistakes };
}

function isSection(name: string, value: unknown): boolean {
  return name === "log" && isFields(value) && !isLog(value);
}

function isLog(value: unknown): value is Log {
  return typeof (value as Partial<Log> | null)?.info === "function";
}

function isFields(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** As a file would have it. */
function written(kind: string, value: unknown): unknown {
  if (typeof value !== "number") return value;
  if (kind === "duration") return `${value}ms`;
  return kind === "size" ? `${value}B` : value;
}

function unknownOption(option: string): string {
  const [section, inner] = option.split(".") as [string, string?];
  const known = inner === undefined ? KNOWN : namesIn(section);
  const near = nearest(inner ?? section, known);
  if (near !== null)
    return `is not an option; did you mean ${inner === undefined ? near : `${section}.${near}`}?`;
  // `port` was meant for `http.port`.
  const elsewhere = [...BY_OPTION.keys()].find((each) => each.endsWith(`.${inner ?? section}`));
  if (elsewhere !== undefined) return `is not an option; did you mean ${elsewhere}?`;
  return `is not an option; there are ${known.join(", ")}`;
}

function namesIn(section: string): string[] {
  return [...BY_OPTION.keys()]
    .filter((each) => each.startsWith(`${section}.`))
    .map((each) => each.slice(section.length + 1));
}

function exampleIn(section: string): string {
  return namesIn(section)[0]!;
}

function shown(value: unknown): string {
  if (typeof value === "function") return "a function";
  return JSON.stringify(value) ?? String(value);
}

function tasksIn(tasks: TasksOption = [], mistake: (field: string, text: string) => void) {
  const all = typeof tasks === "string" ? [tasks] : Array.isArray(tasks) ? tasks : Object.values(tasks ?? {});
  const given: AnyTask[] = [];
  const folders: string[] = [];
  all.forEach((each: unknown, at) => {
    if (typeof each === "string") folders.push(each);
    else if (isFields(each) && "run" in each) given.push(each as AnyTask);
    else mistake(`tasks[${at}]`, `must be a task (defineTask) or the path of a folder, not ${shown(each)}`);
  });
  return { given, folders };
}

function checkOthers(
  { schedules = [], telemetry = { api: {} }, onError, use = [] }: NodeOptions,
  mistake: (field: string, text: string) => void,
): void {
  if (!Array.isArray(schedules)) mistake("schedules", `must be a list of schedules, not ${shown(schedules)}`);
  if (!isFields(telemetry)) mistake("telemetry", `must be openTelemetry(api), not ${shown(telemetry)}`);
  if (onError !== undefined && typeof onError !== "function")
    mistake("onError", `must be a function, not ${shown(onError)}`);
  if (!Array.isArray(use)) return mistake("use", `must be a list of functions, not ${shown(use)}`);
  use.forEach((each: unknown, at) => {
    if (typeof each !== "function")
      mistake(`use[${at}]`, `must be a function (context, next), not ${shown(each)}`);
  });
}

function logOf(log: NodeOptions["log"], settings: Settings): Log | undefined {
  if (log === undefined || log === false) return undefined;
  return isLog(log) ? log : createLog({ ...settings.log, name: settings.name });
}
