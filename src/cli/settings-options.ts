/** Command options for the settings that have a flag. */

import type { Command } from "commander";
import { Option } from "commander";
import type { LoadOptions, Loaded } from "../config/load-settings.ts";
import { loadSettings } from "../config/load-settings.ts";
import type { Setting, SettingPath } from "../config/settings.ts";
import { SETTINGS } from "../config/settings.ts";
import type { Terminal } from "./terminal/terminal.ts";
import { say } from "./terminal/terminal.ts";
import { adviceText } from "../config/mistake.ts";

const FLAGGED = (SETTINGS as readonly Setting[]).filter((row) => row.flag !== undefined);
const SETTINGS_GROUP = "Settings, over those of a file:";
const PLACEHOLDERS: Partial<Record<Setting["kind"], string>> = {
  integer: "number",
  number: "number",
  store: "sqlite|memory|postgres://…",
  map: "a=url,b=url",
  address: "host:port",
  addresses: "host:port",
  path: "dir",
  paths: "dir",
};
const REPEATABLE: ReadonlySet<Setting["kind"]> = new Set(["paths", "list", "map", "addresses"]);

export function withSettingsOptions(command: Command): Command {
  const file = new Option(
    "--config <file>",
    "configuration file (BATON_CONFIG; default baton.yaml or cluster_config.json, if there is one)",
  );
  for (const option of [file, ...FLAGGED.map(optionOf)]) command.addOption(option.helpGroup(SETTINGS_GROUP));
  return command;
}

function optionOf(row: Setting): Option {
  if (row.kind === "boolean") return new Option(row.flag!, row.about.replaceAll("`", ""));
  const placeholder = row.values
    ? row.values.join(row.kind === "list" ? "," : "|")
    : (PLACEHOLDERS[row.kind] ?? row.path.split(".").at(-1)!);
  const option = new Option(`${row.flag} <${placeholder}>`, row.about.replaceAll("`", ""));
  // Values stay text: the settings read them, so that a flag, a variable and a file are judged alike.
  if (REPEATABLE.has(row.kind)) {
    option.argParser((text: string, before: readonly string[] | undefined) => [...(before ?? []), text]);
    option.description += " May be repeated.";
  }
  return option;
}

/** The flags that were given, to be handed on to another command, but for those named. */
export function flagsOf(
  options: Readonly<Record<string, unknown>>,
  except: readonly SettingPath[],
): readonly string[] {
  return FLAGGED.filter((row) => !except.some((path) => path === row.path)).flatMap((row) => {
    const value = options[new Option(`${row.flag} <x>`).attributeName()];
    if (value === undefined) return [];
    if (value === true) return [row.flag!];
    return [value].flat().flatMap((each) => [row.flag!, String(each)]);
  });
}

export function loadFrom(terminal: Terminal, options: Readonly<Record<string, unknown>>): Loaded {
  const loaded = loadQuietly(terminal, options);
  for (const warning of loaded.warnings) say(terminal, `warning: ${adviceText(warning)}`);
  return loaded;
}

/** For whoever tells of the warnings in another way. */
export function loadQuietly(terminal: Terminal, options: Readonly<Record<string, unknown>>): Loaded {
  const flags = FLAGGED.flatMap((row) => {
    const value = options[new Option(`${row.flag} <x>`).attributeName()];
    if (value === undefined) return [];
    // Commander says true for a flag without a value; settings are read from text.
    return [[row.path, value === true ? "true" : value]];
  });
  return loadSettings({
    cwd: terminal.cwd,
    environment: terminal.environment,
    configFile: options["config"] as string | undefined,
    flags: Object.fromEntries(flags) as LoadOptions["flags"],
  });
}
