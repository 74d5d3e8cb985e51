/** A configuration file, YAML or JSON (which YAML reads too), taken apart into values with their places. */

import { isAlias, isMap, isScalar, isSeq, LineCounter, parseDocument } from "yaml";
import type { Document, Pair } from "yaml";
import { nearest } from "../core/errors.ts";
import { SETTING_BY_PATH, SETTINGS } from "./settings.ts";
import type { Found } from "./source.ts";

export interface FileContent {
  readonly found: readonly Found[];
  /** Each as `file:line:col: message`. */
  readonly mistakes: readonly string[];
}

const SECTIONS = new Set(
  SETTINGS.flatMap((row) => (row.path.includes(".") ? [row.path.split(".")[0]!] : [])),
);
const TOP_NAMES = new Set([
  ...SETTINGS.map((row) => row.path).filter((path) => !path.includes(".")),
  ...SECTIONS,
]);

/** `file` is only the name to show. */
export function readSettingsFile(file: string, text: string): FileContent {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const found: Found[] = [];
  const mistakes: string[] = [];
  const place = (offset: number): { line: number; column: number } => {
    const { line, col } = lines.linePos(offset);
    return { line, column: col };
  };
  const mistake = (offset: number, message: string): void => {
    const { line, column } = place(offset);
    mistakes.push(`${file}:${line}:${column}: ${message}`);
  };

  for (const error of document.errors) mistake(error.pos[0], firstLine(error.message));
  if (mistakes.length > 0) return { found, mistakes };

  const root = document.contents;
  if (root === null || (isScalar(root) && root.value === null)) return { found, mistakes };
  if (!isMap(root)) {
    mistake(root.range?.[0] ?? 0, "a configuration file is a map of settings, such as `name: node-1`");
    return { found, mistakes };
  }

  const take = (path: string, pair: Pair, at: number): void => {
    const value = plain(pair.value, document);
    const valueAt = offsetOf(pair.value) ?? at;
    if (value === null || value === undefined) {
      mistake(at, `${path} has no value; give it one or remove the line`);
      return;
    }
    found.push({ path, value, source: { from: "file", file, ...place(valueAt) } });
  };

  for (const pair of root.items as Pair[]) {
    const name = keyOf(pair);
    const at = offsetOf(pair.key) ?? 0;
    if (SECTIONS.has(name)) {
      const section = isAlias(pair.value) ? pair.value.resolve(document) : pair.value;
      if (section === null || section === undefined || (isScalar(section) && section.value === null))
        continue;
      if (!isMap(section)) {
        const names = sectionNames(name).join(", ");
        mistake(offsetOf(pair.value) ?? at, `${name} is a section; write its settings (${names}) below it`);
        continue;
      }
      for (const inner of section.items) {
        const path = `${name}.${keyOf(inner)}`;
        const innerAt = offsetOf(inner.key) ?? at;
        if (SETTING_BY_PATH.has(path)) take(path, inner, innerAt);
        else mistake(innerAt, unknownSetting(path));
      }
    } else if (TOP_NAMES.has(name)) take(name, pair, at);
    else mistake(at, unknownSetting(name));
  }
  return { found, mistakes };
}

function unknownSetting(path: string): string {
  if (SETTING_BY_PATH.has(path)) {
    const [section, name] = path.split(".");
    return `unknown setting ${path}; write it as \`${name}\` under \`${section}:\``;
  }
  // First among the neighbours: `http.hots` is nearer to `http.host` than to anything elsewhere.
  const guess = nearest(path, path.includes(".") ? SETTING_BY_PATH.keys() : TOP_NAMES) ?? whereverNamed(path);
  return `unknown setting ${path}${guess ? `; did you mean ${guess}?` : ""}`;
}

/** `port` at the top was meant for `http.port`. */
function whereverNamed(path: string): string | null {
  const last = path.split(".").at(-1)!;
  return SETTINGS.find((row) => row.path.endsWith(`.${last}`))?.path ?? null;
}

function sectionNames(section: string): string[] {
  return SETTINGS.filter((row) => row.path.startsWith(`${section}.`)).map((row) =>
    row.path.slice(section.length + 1),
  );
}

function keyOf(pair: Pair): string {
  return isScalar(pair.key) ? String(pair.key.value) : String(pair.key);
}

function offsetOf(node: unknown): number | undefined {
  return isScalar(node) || isMap(node) || isSeq(node) || isAlias(node) ? node.range?.[0] : undefined;
}

function plain(node: unknown, document: Document): unknown {
  return isScalar(node) || isMap(node) || isSeq(node) || isAlias(node) ? node.toJS(document) : node;
}

function firstLine(text: string): string {
  return text.split("\n", 1)[0]!;
}
