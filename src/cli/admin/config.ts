/** `baton config`: shows and checks the settings without starting a node. */

import { type Command, Option } from "commander";
import { Document, isMap, isScalar } from "yaml";
import type { Loaded } from "../../config/load-settings.ts";
import { nested, type Setting, SETTING_BY_PATH, SETTINGS } from "../../config/settings.ts";
import { sourceText } from "../../config/mistake.ts";
import { type Value, writeValue } from "../../config/setting-value.ts";
import { type Column, OUTPUT_FORMATS, type OutputFormat, print, table } from "../terminal/output.ts";
import { loadForStart, loadFrom, withSettingsOptions } from "../settings-options.ts";
import { say, type Terminal } from "../terminal/terminal.ts";

interface PrintOptions {
  readonly output: OutputFormat;
  readonly withSource?: boolean;
}

export function addConfigCommands(program: Command, terminal: Terminal): void {
  const config = program.command("config").description("look at the configuration");

  withSettingsOptions(config.command("check"), [])
    .description("tell every mistake in the file, the environment and the flags")
    .action((options: Readonly<Record<string, unknown>>) => {
      const { file } = loadForStart(terminal, options);
      say(terminal, `the configuration is valid (${file ?? "no file, defaults and environment only"})`);
    });

  withSettingsOptions(config.command("print"), [])
    .description("print every setting with its value")
    .option("--with-source", "also print where each value comes from")
    .addOption(new Option("-o, --output <format>", "how to print").choices(OUTPUT_FORMATS).default("yaml"))
    .action((options: PrintOptions & Readonly<Record<string, unknown>>) => {
      const loaded = loadFrom(terminal, options);
      printSettings(terminal, loaded, options.output, options.withSource ?? false);
    });
}

/** In the shape of a file, so that what was printed can be used as one. */
function printSettings(terminal: Terminal, loaded: Loaded, format: OutputFormat, withSource: boolean): void {
  const written = (row: Setting): Value => writeValue(row, loaded.values.get(row.path)!);
  const source = (row: Setting): string => sourceText(loaded.sources.get(row.path)!);
  if (format === "yaml" && withSource) {
    const inFile = nested("name", written);
    terminal.out.write(yamlWithSources(inFile, (path) => source(SETTING_BY_PATH.get(path)!)));
    return;
  }
  const data = nested("name", (row) =>
    withSource ? { value: written(row), source: source(row) } : written(row),
  );
  const columns: readonly Column<Setting>[] = [
    ["setting", ({ path }) => path],
    ["value", (row) => cellText(written(row))],
    ...(withSource ? [["source", source] as const] : []),
  ];
  print(terminal, format, data, () => table(terminal, columns, SETTINGS));
}

function cellText(value: Value): string {
  if (typeof value !== "object") return String(value);
  const parts = Object.entries(value).map(([name, part]) =>
    Array.isArray(value) ? part : `${name}=${part}`,
  );
  return parts.join(", ");
}

function yamlWithSources(data: Record<string, unknown>, source: (path: string) => string): string {
  const document = new Document(data);
  const comment = (node: unknown, prefix: string): void => {
    if (!isMap(node)) return;
    for (const pair of node.items) {
      const path = `${prefix}${isScalar(pair.key) ? String(pair.key.value) : ""}`;
      const value = pair.value as { comment?: string | null; flow?: boolean };
      if (isMap(value) && !SETTING_BY_PATH.has(path)) comment(value, `${path}.`);
      else {
        value.comment = ` ${source(path)}`;
        value.flow = true;
      }
    }
  };
  comment(document.contents, "");
  return document.toString();
}
