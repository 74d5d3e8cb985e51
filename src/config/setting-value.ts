/** Parses and prints the value of one setting, by its kind. */

import { resolve } from "node:path";
import { durationMs, durationText } from "../core/duration.ts";
import { nearest, reasonOf } from "../core/errors.ts";
import { readAddress } from "./values/address.ts";
import { Mistake } from "./mistake.ts";
import { type NodeMap, nodesFromText, readNodes } from "./values/node-map.ts";
import { MASK, maskedUrl, readServerUrl, readStore } from "./values/secret-url.ts";
import type { Definition, Kind } from "./definitions/setting-definition.ts";
import { formatSize, parseSize } from "./values/units.ts";

export type Value = string | number | boolean | readonly string[] | NodeMap;

interface KindRules {
  /** What a value that came as text (environment, flag) would be in a file; without it, that text. */
  readonly fromText?: (found: unknown) => unknown;
  /** The value that was meant, or a `Mistake`. Relative paths are taken from `directory`. */
  readonly read: (found: unknown, setting: Definition, directory: string) => Value;
  /** As a person would write it into a file, but for passwords. */
  readonly write?: (value: Value) => Value;
}

const KINDS: Readonly<Record<Kind, KindRules>> = {
  string: { read: orNothing(readString) },
  path: { read: orNothing((found, directory) => resolve(directory, readString(found))) },
  address: { read: orNothing((found) => readAddress(readString(found), true)) },
  paths: {
    // A path may have a comma in it, so a flag means what it says.
    fromText: (found) => (Array.isArray(found) ? trimmed(found) : partsOf(found)),
    read: (found, _, directory) => readList(found).map((part) => resolve(directory, part)),
  },
  list: {
    fromText: partsOf,
    read: (found, { values }) => (values ? readChoices(values, readList(found)) : readList(found)),
  },
  addresses: {
    fromText: partsOf,
    read: (found) => [...new Set(readList(found))].map((part) => readAddress(part, false)),
  },
  map: { fromText: (found) => nodesFromText([found].flat().join(",")), read: readNodes },
  enum: { read: (found, { values = [], aliases = [] }) => readChoice(values, aliases, found) },
  store: { read: (found, _, directory) => readStore(found, directory), write: masked },
  redis: { read: (found) => readServerUrl("redis", found), write: masked },
  etcd: { read: (found) => readServerUrl("etcd", found), write: masked },
  integer: {
    fromText: numberIn,
    read: (found) => expect(found, Number.isSafeInteger(found), "a whole number"),
  },
  number: { fromText: numberIn, read: (found) => expect(found, Number.isFinite(found), "a number") },
  boolean: {
    fromText: (found) => (found === "true" ? true : found === "false" ? false : found),
    read: (found) => expect(found, typeof found === "boolean", "true or false"),
  },
  duration: {
    read: readDuration,
    write: (value) => durationText(value as number),
  },
  size: {
    read: (found) => parseSize(readAmount(found, "a size such as 1MiB")),
    write: (value) => formatSize(value as number),
  },
};

/** `text`: from the environment or a flag, and still to be read. A file has typed values: a quoted number is a mistake there. */
export function readValue(setting: Definition, found: unknown, text: boolean, directory: string): Value {
  if (setting.secret) checkSecret(found);
  const { fromText, read } = KINDS[setting.kind];
  const value = read(text && fromText ? fromText(found) : found, setting, directory);
  checkRange(setting, value);
  for (const name of Array.isArray(value) ? value : [value]) checkPattern(setting, name);
  return value;
}

export function writeValue({ kind, secret }: Definition, value: Value): Value {
  if (secret) return value === "" ? "" : MASK;
  return KINDS[kind].write?.(value) ?? value;
}

function masked(value: Value): string {
  return maskedUrl(value as string);
}

/** Before anything that would show what was found. */
function checkSecret(found: unknown): void {
  if (typeof found !== "string") throw new Mistake("must be text; write it in quotes");
  if (found === MASK) {
    throw new Mistake(`is ${MASK}, as \`baton config print\` shows it; write the real one`);
  }
}

function numberIn(found: unknown): unknown {
  return typeof found === "string" && /^-?\d+(?:\.\d+)?$/.test(found.trim()) ? Number(found) : found;
}

/** A flag may be given several times or have commas, as variables do. */
function partsOf(found: unknown): string[] {
  return trimmed([found].flat().flatMap((text) => String(text).split(",")));
}

function trimmed(parts: readonly unknown[]): string[] {
  return parts.map((part) => String(part).trim()).filter((part) => part !== "");
}

/** Where nothing is the default, nothing may also be said. */
function orNothing(read: (found: unknown, directory: string) => string): KindRules["read"] {
  return (found, setting, directory) =>
    found === "" && setting.default === "" ? "" : read(found, directory);
}

function expect(found: unknown, right: boolean, what: string): Value {
  if (right) return found as Value;
  throw new Mistake(`must be ${what}, not ${shown(found)}`);
}

function readDuration(found: unknown): number {
  try {
    return durationMs(found);
  } catch (error) {
    throw new Mistake(reasonOf(error));
  }
}

function readAmount(found: unknown, what: string): string {
  return typeof found === "number" ? String(found) : readText(found, what);
}

function readString(found: unknown): string {
  const text = readText(found, "text");
  if (text.trim() === "") throw new Mistake("must not be empty");
  return text;
}

function readText(found: unknown, what: string): string {
  if (typeof found === "string") return found;
  const remedy =
    typeof found === "number" || typeof found === "boolean" ? `; write "${found}" in quotes` : "";
  throw new Mistake(`must be ${what}, not ${shown(found)}${what === "text" ? remedy : ""}`);
}

function readList(found: unknown): string[] {
  if (!Array.isArray(found)) {
    const remedy = typeof found === "string" ? `; write [${found}]` : "";
    throw new Mistake(`must be a list, not ${shown(found)}${remedy}`);
  }
  return found.map((part: unknown) => readString(part));
}

function readChoice(choices: readonly string[], aliases: readonly string[], found: unknown): string {
  if (typeof found === "string" && (choices.includes(found) || aliases.includes(found))) return found;
  const all = choices.length === 2 ? choices.join(" or ") : `one of ${choices.join(", ")}`;
  const guess = typeof found === "string" ? nearest(found, choices) : null;
  throw new Mistake(`must be ${all}, not ${shown(found)}${guess ? `; did you mean ${guess}?` : ""}`);
}

function readChoices(choices: readonly string[], found: readonly string[]): string[] {
  const all = choices.join(", ");
  if (found.length === 0) throw new Mistake(`must name at least one of ${all}`);
  const unknown = found.find((part) => !choices.includes(part));
  if (unknown !== undefined) {
    const guess = nearest(unknown, choices);
    throw new Mistake(`knows only ${all}, not ${shown(unknown)}${guess ? `; did you mean ${guess}?` : ""}`);
  }
  return choices.filter((choice) => found.includes(choice));
}

function checkRange(setting: Definition, value: Value): void {
  if (typeof value !== "number") return;
  const { min, max } = setting;
  const written = setting.kind === "duration" ? `, and is ${durationText(value)}` : "";
  if (min !== undefined && value < limit(setting, min))
    throw new Mistake(`must be at least ${min}${written}`);
  if (max !== undefined && value > limit(setting, max)) throw new Mistake(`must be at most ${max}${written}`);
}

function limit(setting: Definition, written: string | number): number {
  if (typeof written === "number") return written;
  return setting.kind === "size" ? parseSize(written) : durationMs(written);
}

function checkPattern(setting: Definition, value: unknown): void {
  if (!setting.pattern || typeof value !== "string" || setting.pattern.test(value)) return;
  const asked =
    setting.patternIs ?? "consist of letters, digits and ._- and begin and end with a letter or digit";
  throw new Mistake(`must ${asked}${setting.secret ? "" : `, not ${shown(value)}`}`);
}

function shown(value: unknown): string {
  if (value === null || value === undefined) return "nothing";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object") return "a section";
  const text = JSON.stringify(value);
  return text.length > 60 ? `${text.slice(0, 57)}..."` : text;
}
