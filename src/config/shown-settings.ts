/** The settings of a running node, for people to read. Secrets are not included. */

import { loadedFrom } from "./load-settings.ts";
import { SETTINGS, settingKey, type Setting, type Settings } from "./settings.ts";
import { sourceText } from "./mistake.ts";
import { writeValue, type Value } from "./setting-value.ts";

export interface ShownSetting {
  readonly path: string;
  /** As a person would write it. */
  readonly value: Value;
  /** Where it was written; null when the settings were made by a program. */
  readonly source: string | null;
  readonly isDefault: boolean;
}

export const HIDDEN = "(hidden)";

export function shownSettings(settings: Settings): ShownSetting[] {
  const sources = loadedFrom(settings)?.sources;
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
