/** Command options for the settings that have a flag. */

import { type Command, Option } from "commander";
import { type Loaded, type LoadOptions, loadSettings } from "../config/load-settings.ts";
import { type Setting, type SettingPath, SETTINGS } from "../config/settings.ts";
import { repeated } from "./node-options.ts";
import { say, type Terminal } from "./terminal/terminal.ts";
import { adviceText } from "../config/mistake.ts";
import { checkSecret } from "../config/secrets/cluster-secret.ts";

const FLAGGED = SETTINGS.filter((row) => row.flag !== undefined);
const ALL_SETTINGS = "Settings, over those of a file:";
/** Of commands that only read the configuration: their help need not repeat what `baton start --help` says. */
const SOME_SETTINGS = "Settings (all flags of `baton start` are taken):";
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

/** `shown`: the settings that the help lists; the others can be given too. All if it is left out. */
export function withSettingsOptions(command: Command, shown?: readonly SettingPath[]): Command {
  const file = new Option(
    "--config <file>",
    "configuration file (BATON_CONFIG; default baton.yaml or cluster_config.json, if there is one)",
  );
  const group = shown ? SOME_SETTINGS : ALL_SETTINGS;
  command.addOption(file.helpGroup(group));
  for (const row of FLAGGED) {
    const option = optionOf(row).helpGroup(group);
    const isShown = shown?.includes(row.path as SettingPath) ?? true;
    command.addOption(isShown ? option : option.hideHelp());
  }
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
    option.argParser(repeated);
    option.description += " May be repeated.";
  }
  return option;
}

function givenFlags(options: Readonly<Record<string, unknown>>) {
  return FLAGGED.flatMap((row) => {
    const value = options[new Option(`${row.flag} <x>`).attributeName()];
    return value === undefined ? [] : [{ path: row.path as SettingPath, flag: row.flag!, value }];
  });
}

/** The flags that were given, to be handed on to another command, but for those named. */
export function flagsOf(
  options: Readonly<Record<string, unknown>>,
  except: readonly SettingPath[],
): readonly string[] {
  return givenFlags(options)
    .filter(({ path }) => !except.includes(path))
    .flatMap(({ flag, value }) =>
      value === true ? [flag] : [value].flat().flatMap((each) => [flag, String(each)]),
    );
}

export function loadFrom(terminal: Terminal, options: Readonly<Record<string, unknown>>): Loaded {
  const loaded = loadQuietly(terminal, options);
  for (const warning of loaded.warnings) say(terminal, `warning: ${adviceText(warning)}`);
  return loaded;
}

/** The settings of a node that shall start: its secret is checked too. */
export function loadForStart(terminal: Terminal, options: Readonly<Record<string, unknown>>): Loaded {
  const loaded = loadFrom(terminal, options);
  checkSecret(loaded.settings);
  return loaded;
}

export function loadQuietly(terminal: Terminal, options: Readonly<Record<string, unknown>>): Loaded {
  const flags = givenFlags(options).map(({ path, value }) => [path, value === true ? "true" : value]);
  return loadSettings({
    cwd: terminal.cwd,
    environment: terminal.environment,
    configFile: options["config"] as string | undefined,
    flags: Object.fromEntries(flags) as LoadOptions["flags"],
  });
}
