/** Parses and prints the value of one setting, by its kind. */

import { resolve } from "node:path";
import { nearest } from "../../core/errors.ts";
import { readAddress } from "./address.ts";
import { formatDuration, parseDuration } from "./duration.ts";
import { Mistake } from "../mistake.ts";
import { nodesFromText, readNodes } from "./node-map.ts";
import type { NodeMap } from "./node-map.ts";
import { MASK, maskedUrl, readServerUrl } from "./server-url.ts";
import type { Setting } from "../definitions/setting-definition.ts";
import { formatSize, parseSize } from "./size.ts";
import { maskedStore, readStore } from "./store-url.ts";

export type Value = string | number | boolean | readonly string[] | NodeMap;

/**
 * The value that was meant, or a `Mistake`. `text` says that it came as text (environment, flag) and still has to
 * be read; a file brings typed values, and there a quoted number is a mistake like any other.
 * Relative paths are taken from `directory`.
 */
export function readValue(setting: Setting, found: unknown, text: boolean, directory: string): Value {
  if (setting.secret) checkSecret(found);
  const value = readKind(setting, text ? fromText(setting, found) : found, directory);
  checkRange(setting, value);
  for (const name of Array.isArray(value) ? value : [value]) checkPattern(setting, name);
  return value;
}

/** As a person would write it into a file, but for passwords. */
export function writeValue(setting: Setting, value: Value): Value {
  if (setting.kind === "duration") return formatDuration(value as number);
  if (setting.kind === "size") return formatSize(value as number);
  if (setting.kind === "store") return maskedStore(value as string);
  if (setting.kind === "redis" || setting.kind === "etcd") return maskedUrl(value as string);
  if (setting.secret) return value === "" ? "" : MASK;
  return value;
}

/** Before anything that would show what was found. */
function checkSecret(found: unknown): void {
  if (typeof found !== "string") throw new Mistake("must be text; write it in quotes");
  if (found === MASK) {
    throw new Mistake(`is ${MASK}, as \`baton config print\` shows it; write the real one`);
  }
}

function fromText(setting: Setting, found: unknown): unknown {
  switch (setting.kind) {
    case "integer":
    case "number":
      return typeof found === "string" && /^-?\d+(?:\.\d+)?$/.test(found.trim()) ? Number(found) : found;
    case "boolean":
      return found === "true" ? true : found === "false" ? false : found;
    case "map":
      return nodesFromText([found].flat().join(","));
    case "list":
    case "addresses":
      // A flag may be given several times or have commas, as variables do.
      return [found].flat().flatMap((part) => partsOf(String(part)));
    case "paths":
      // A path may have a comma in it, so a flag means what it says.
      return Array.isArray(found)
        ? found.map((part) => String(part).trim()).filter((part) => part !== "")
        : partsOf(String(found));
    case "string":
    case "address":
    case "path":
    case "enum":
    case "store":
    case "redis":
    case "etcd":
    case "duration":
    case "size":
      return found;
  }
}

function partsOf(text: string): string[] {
  return text
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "");
}

function readKind(setting: Setting, found: unknown, directory: string): Value {
  switch (setting.kind) {
    case "string":
      // Where nothing is the default, nothing may also be said.
      return found === "" && setting.default === "" ? "" : readString(found);
    case "address":
      return found === "" && setting.default === "" ? "" : readAddress(readString(found), true);
    case "addresses":
      return [...new Set(readList(found))].map((part) => readAddress(part, false));
    case "map":
      return readNodes(found);
    case "path":
      return found === "" && setting.default === "" ? "" : resolve(directory, readString(found));
    case "paths":
      return readList(found).map((part) => resolve(directory, part));
    case "list":
      return setting.values ? readChoices(setting.values, readList(found)) : readList(found);
    case "enum":
      return readChoice(setting.values ?? [], found);
    case "store":
      return readStore(found);
    case "redis":
    case "etcd":
      return readServerUrl(setting.kind, found);
    case "integer":
      if (typeof found === "number" && Number.isSafeInteger(found)) return found;
      throw new Mistake(`must be a whole number, not ${shown(found)}`);
    case "number":
      if (typeof found === "number" && Number.isFinite(found)) return found;
      throw new Mistake(`must be a number, not ${shown(found)}`);
    case "boolean":
      if (typeof found === "boolean") return found;
      throw new Mistake(`must be true or false, not ${shown(found)}`);
    case "duration":
      return parseDuration(
        typeof found === "number" ? String(found) : readText(found, "a duration such as 30s"),
      );
    case "size":
      return parseSize(typeof found === "number" ? String(found) : readText(found, "a size such as 1MiB"));
  }
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

function readChoice(choices: readonly string[], found: unknown): string {
  if (typeof found === "string" && choices.includes(found)) return found;
  const all = choices.length === 2 ? choices.join(" or ") : `one of ${choices.join(", ")}`;
  const guess = typeof found === "string" ? nearest(found, choices) : null;
  throw new Mistake(`must be ${all}, not ${shown(found)}${guess ? `; did you mean ${guess}?` : ""}`);
}

/** Each once, in the order in which they are known. */
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

function checkRange(setting: Setting, value: Value): void {
  if (typeof value !== "number") return;
  const { min, max } = setting;
  if (min !== undefined && value < limit(setting, min)) throw new Mistake(`must be at least ${min}`);
  if (max !== undefined && value > limit(setting, max)) throw new Mistake(`must be at most ${max}`);
}

function limit(setting: Setting, written: string | number): number {
  if (typeof written === "number") return written;
  return setting.kind === "size" ? parseSize(written) : parseDuration(written);
}

function checkPattern(setting: Setting, value: unknown): void {
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
