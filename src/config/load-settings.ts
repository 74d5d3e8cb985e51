/** Combines the settings: defaults < profile < file < environment < flags. All errors are reported at once, each with its place. */

import { existsSync, readFileSync } from "node:fs";
import { hostname } from "node:os";
import { dirname, relative, resolve } from "node:path";
import { BatonError } from "../core/errors.ts";
import { checkSettings } from "./checks.ts";
import {
  describeMistake,
  Mistake,
  whyUnreadable,
  type Advice,
  type Found,
  type Source,
  type SourceContent,
  sourceText,
} from "./mistake.ts";
import { listeningHost } from "./values/address.ts";
import { listenerOf, type NodeMap } from "./values/node-map.ts";
import { type Environment, readEnvironment } from "./sources/environment.ts";
import { FOREIGN_FILE_VARIABLE } from "./sources/dialects/dialects.ts";
import { readSettingsFile } from "./sources/settings-file.ts";
import { type GivenProfile, profileDefaults } from "./definitions/profiles.ts";
import {
  nested,
  type Setting,
  SETTING_BY_PATH,
  settingKey,
  type SettingPath,
  SETTINGS,
  type Settings,
} from "./settings.ts";
import { readValue, type Value, writeValue } from "./setting-value.ts";

/** The last one is another system's, see sources/dialects/. */
export const FILE_NAMES = ["baton.yaml", "baton.yml", "baton.json", "cluster_config.json"] as const;

export interface LoadOptions {
  readonly cwd?: string;
  readonly environment?: Environment;
  /** Null for none; the one in the directory unless told otherwise. */
  readonly configFile?: string | null;
  readonly flags?: Readonly<Partial<Record<SettingPath, string | readonly string[] | undefined>>>;
  /** As a program has given them: they win over everything, and have the types of a file. */
  readonly options?: readonly Found[];
  readonly hostname?: string;
}

export interface Loaded {
  readonly settings: Settings;
  readonly values: ReadonlyMap<string, Value>;
  readonly sources: ReadonlyMap<string, Source>;
  readonly file: string | null;
  readonly warnings: readonly Advice[];
}

/** Rejects nothing quietly: throws BAD_CONFIG, with one line for each mistake and the lines in `details.mistakes`. */
export function loadSettings(options: LoadOptions = {}): Loaded {
  const cwd = options.cwd ?? process.cwd();
  const environment = readEnvironment(options.environment ?? process.env, cwd);
  const file = readFile(options, cwd);
  const flags = Object.entries(options.flags ?? {}).flatMap(([path, value]): Found[] =>
    value === undefined
      ? []
      : [{ path, value, source: { from: "flag", flag: SETTING_BY_PATH.get(path)!.flag! } }],
  );

  const mistakes = [...file.mistakes, ...environment.mistakes];
  let field: string | undefined;
  const values = new Map<string, Value>();
  const sources = new Map<string, Source>();
  const take = ({ path, value, source }: Found): void => {
    const setting = SETTING_BY_PATH.get(path)!;
    // Paths in a file are meant from where the file lies, wherever the node is started.
    const directory = source.from === "file" ? file.directory : cwd;
    sources.set(path, source);
    try {
      const text = source.from === "environment" || source.from === "flag";
      values.set(path, readValue(setting, value, text, directory));
    } catch (error) {
      if (!(error instanceof Mistake)) throw error;
      values.delete(path);
      field ??= sourceText(source);
      mistakes.push(describeMistake(source, path, error.message));
    }
  };

  const name = nodeNameFrom(options.hostname ?? hostname());
  for (const { path, default: value } of SETTINGS)
    take({ path, value: path === "name" ? name : value, source: { from: "default" } });
  // A value that is overruled is read all the same: a mistake in it would come back with the next start.
  for (const found of [...file.found, ...environment.found, ...flags, ...(options.options ?? [])])
    take(found);
  const takeDefaults = (defaults: readonly Found[]): void => {
    for (const found of defaults) if (sources.get(found.path)?.from === "default") take(found);
  };
  const profile = values.get("profile") as GivenProfile | undefined;
  if (profile !== undefined) {
    const source: Source = { from: "profile", profile };
    takeDefaults(Object.entries(profileDefaults(profile)).map(([path, value]) => ({ path, value, source })));
  }
  takeDefaults(ownListener(values, sources));
  mistakes.push(...checkSettings(values, sources));
  if (mistakes.length > 0) throw new BatonError("BAD_CONFIG", mistakes.join("\n"), { field, mistakes });

  const warnings = [...file.warnings, ...environment.warnings];
  const settings = nested("key", ({ path }) => values.get(path)) as unknown as Settings;
  const loaded = { settings, values, sources, file: file.shown, warnings };
  origins.set(loaded.settings, loaded);
  return loaded;
}

/** Where these very settings come from; nothing for those that a program has made or changed. */
const origins = new WeakMap<Settings, Loaded>();

/** With another port than was asked for, found at the start; everything else still tells where it comes from. */
export function withPort(settings: Settings, port: number, why: string): Settings {
  const changed: Settings = { ...settings, http: { ...settings.http, port } };
  const loaded = origins.get(settings);
  if (loaded) {
    const values = new Map(loaded.values).set("http.port", port);
    const sources = new Map(loaded.sources).set("http.port", { from: "start", why });
    origins.set(changed, { ...loaded, settings: changed, values, sources });
  }
  return changed;
}

/** A valid node name that still looks like the host's. */
export function nodeNameFrom(host: string): string {
  const name = host
    .replace(/[^A-Za-z0-9._-]+/g, "-")
    .slice(0, 63)
    .replace(/^[^A-Za-z0-9]+|[^A-Za-z0-9]+$/g, "");
  return name === "" ? "node" : name;
}

/** The default address of a node in a configured list: it listens on the port of its own URL. */
function ownListener(values: ReadonlyMap<string, Value>, sources: ReadonlyMap<string, Source>): Found[] {
  const nodes = (values.get("nodes") ?? {}) as NodeMap;
  const name = values.get("name") as string | undefined;
  if (name === undefined || !Object.hasOwn(nodes, name)) return [];
  const url = nodes[name]!;
  const source = sources.get("nodes")!;
  const own: Found = { path: "http.url", value: url, source };
  const listener = listenerOf(url);
  if (listener === null) return [own];
  // As text where the source is one that speaks in text.
  const port = source.from === "file" ? listener.port : String(listener.port);
  const host = listeningHost(listener.host);
  return [own, { path: "http.host", value: host, source }, { path: "http.port", value: port, source }];
}

interface FileRead extends SourceContent {
  readonly shown: string | null;
  readonly directory: string;
}

/** Variables that name a file; the first one that is set wins. */
const NAMING_VARIABLES = ["BATON_CONFIG", FOREIGN_FILE_VARIABLE] as const;

function readFile(options: LoadOptions, cwd: string): FileRead {
  const environment = options.environment ?? process.env;
  const nothing = { found: [], mistakes: [], warnings: [] };
  if (options.configFile === null) return { shown: null, directory: cwd, ...nothing };
  const variable = NAMING_VARIABLES.find((each) => environment[each]);
  const asked = options.configFile ?? (variable && environment[variable]);
  const name = asked ?? FILE_NAMES.find((each) => existsSync(resolve(cwd, each)));
  if (name === undefined) return { shown: null, directory: cwd, ...nothing };
  const path = resolve(cwd, name);
  const near = relative(cwd, path);
  const shown = near.startsWith("..") ? path : near;
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    const who = options.configFile != null ? "--config" : (variable ?? shown);
    const mistake = `${who} cannot be read (${shown}): ${whyUnreadable(error)}`;
    return { shown, directory: cwd, ...nothing, mistakes: [mistake] };
  }
  return { shown, directory: dirname(path), ...readSettingsFile(shown, text) };
}

const HIDDEN = "(hidden)";

export function shownSettings(settings: Settings) {
  const sources = origins.get(settings)?.sources;
  return SETTINGS.map((row: Setting) => {
    const value = valueOf(settings, row);
    const source = sources?.get(row.path);
    return {
      path: row.path,
      value: row.secret ? (value === "" ? "" : HIDDEN) : writeValue(row, value),
      source: source ? sourceText(source) : null,
      isDefault: source ? source.from === "default" : isDefault(row, value),
    };
  });
}

function valueOf(settings: Settings, row: Setting): Value {
  const { section, key } = settingKey(row);
  const all = settings as unknown as Record<string, Record<string, Value>>;
  return section === null ? (all[key] as unknown as Value) : all[section]![key]!;
}

/** As far as it is known: some defaults are determined at the start. */
function isDefault(row: Setting, value: Value): boolean {
  return JSON.stringify(writeValue(row, value)) === JSON.stringify(row.default);
}
