/** The content of a configuration file: Baton's own format, or the format of another system (dialects/). */

import { nearest } from "../../core/errors.ts";
import { DIALECTS } from "./dialects/dialects.ts";
import { type Entry, YamlDocument } from "./yaml-document.ts";
import { SETTING_BY_PATH, SETTINGS } from "../settings.ts";
import type { SourceContent } from "../mistake.ts";

const TOP_NAMES = new Set(SETTINGS.map(({ path }) => path.split(".", 1)[0]!));

export function readSettingsFile(file: string, text: string): SourceContent {
  const document = new YamlDocument(file, text);
  const top = document.top();
  if (top !== null) {
    const dialect = DIALECTS.find((each) => each.speaks(top));
    if (dialect) dialect.read(document, top);
    else readOurs(document, top);
  }
  return document;
}

function readOurs(document: YamlDocument, top: readonly Entry[]): void {
  const take = (path: string, entry: Entry): void => {
    if (entry.value !== null && entry.value !== undefined) document.take(path, entry.value, entry.valueAt);
    else document.mistake(entry.at, `${path} has no value; give it one or remove the line`);
  };
  for (const entry of top) {
    const name = entry.key;
    if (!TOP_NAMES.has(name)) document.mistake(entry.at, unknownSetting(name));
    else if (SETTING_BY_PATH.has(name)) take(name, entry);
    else {
      if (entry.value === null || entry.value === undefined) continue;
      if (entry.entries === null) {
        const inside = SETTINGS.filter(({ path }) => path.startsWith(`${name}.`));
        const names = inside.map(({ path }) => path.slice(name.length + 1)).join(", ");
        document.mistake(entry.valueAt, `${name} is a section; write its settings (${names}) below it`);
        continue;
      }
      for (const inner of entry.entries) {
        const path = `${name}.${inner.key}`;
        if (SETTING_BY_PATH.has(path)) take(path, inner);
        else document.mistake(inner.at, unknownSetting(path));
      }
    }
  }
}

function unknownSetting(path: string): string {
  if (SETTING_BY_PATH.has(path)) {
    const [section, name] = path.split(".");
    return `unknown setting ${path}; write it as \`${name}\` under \`${section}:\``;
  }
  // First among the neighbours: `http.hots` is nearer to `http.host` than to anything elsewhere.
  const near = nearest(path, path.includes(".") ? SETTING_BY_PATH.keys() : TOP_NAMES);
  // `port` at the top was meant for `http.port`.
  const guess = near ?? SETTINGS.find((row) => row.path.endsWith(`.${path.split(".").at(-1)!}`))?.path;
  return `unknown setting ${path}${guess ? `; did you mean ${guess}?` : ""}`;
}
