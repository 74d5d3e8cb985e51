/** Reading and writing the value of one setting, by its kind. */

import { resolve } from "node:path";
import { nearest } from "../core/errors.ts";
import { formatDuration, parseDuration } from "./duration.ts";
import { Mistake } from "./mistake.ts";
import type { Setting } from "./settings.ts";
import { formatSize, parseSize } from "./size.ts";

/** Planned, and documented elsewhere, so that people will try them. */
const FUTURE_STORES = new Set(["postgres", "postgresql", "redis", "rediss"]);

export type Value = string | number | boolean | readonly string[];

/**
 * The value that was meant, or a `Mistake`. `text` says that it came as text (environment, flag) and still has to
 * be read; a file brings typed values, and there a quoted number is a mistake like any other.
 * Relative paths are taken from `directory`.
 */
export function readValue(setting: Setting, found: unknown, text: boolean, directory: string): Value {
  const value = readKind(setting, text ? fromText(setting, found) : found, directory);
  checkRange(setting, value);
  for (const name of Array.isArray(value) ? value : [value]) checkPattern(setting, name);
  return value;
}

/** As a person would write it into a file. */
export function writeValue(setting: Setting, value: Value): Value {
  if (setting.kind === "duration") return formatDuration(value as number);
  if (setting.kind === "size") return formatSize(value as number);
  return value;
}

function fromText(setting: Setting, found: unknown): unknown {
  switch (setting.kind) {
    case "integer":
    case "number":
      return typeof found === "string" && /^-?\d+(?:\.\d+)?$/.test(found.trim()) ? Number(found) : found;
    case "boolean":
      return found === "true" ? true : found === "false" ? false : found;
    case "list":
    case "paths": {
      // A flag may be given several times; a variable has commas.
      const parts = Array.isArray(found) ? (found as unknown[]) : String(found).split(",");
      return parts.map((part) => String(part).trim()).filter((part) => part !== "");
    }
    case "string":
    case "path":
    case "enum":
    case "duration":
    case "size":
      return found;
  }
}

function readKind(setting: Setting, found: unknown, directory: string): Value {
  switch (setting.kind) {
    case "string":
      return readString(found);
    case "path":
      return resolve(directory, readString(found));
    case "paths":
      return readList(found).map((part) => resolve(directory, part));
    case "list":
      return readList(found);
    case "enum":
      return readChoice(setting, found);
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

function readChoice(setting: Setting, found: unknown): string {
  const choices = setting.values ?? [];
  if (typeof found === "string" && choices.includes(found)) return found;
  const all = choices.length === 2 ? choices.join(" or ") : `one of ${choices.join(", ")}`;
  // A URL may have a password in it: only its scheme is repeated.
  const named = typeof found === "string" ? (/^([a-z][a-z0-9+]*):/i.exec(found)?.[1] ?? found) : found;
  if (setting.path === "store" && typeof named === "string" && FUTURE_STORES.has(named)) {
    throw new Mistake(`must be ${all}: ${named} is not in this version`);
  }
  const guess = typeof named === "string" ? nearest(named, choices) : null;
  throw new Mistake(`must be ${all}, not ${shown(named)}${guess ? `; did you mean ${guess}?` : ""}`);
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
  throw new Mistake(
    `must consist of letters, digits and ._- and begin and end with a letter or digit, not ${shown(value)}`,
  );
}

function shown(value: unknown): string {
  if (value === null || value === undefined) return "nothing";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object") return "a section";
  const text = JSON.stringify(value);
  return text.length > 60 ? `${text.slice(0, 57)}..."` : text;
}
