/** What JSON would lose or change of a value without a word: the handler would get something else than was submitted. */

import type { Issue } from "./errors.ts";

/** One for each place, and none for what a class with `toJSON` says of itself. `at`: the name of the value. */
export function jsonIssues(value: unknown, at: string, above: readonly unknown[] = []): Issue[] {
  const odd = above.includes(value) ? "a part of itself" : oddness(value);
  if (odd !== null) return [{ field: at, message: `${at} must be plain JSON, not ${odd}` }];
  if (typeof value !== "object" || value === null) return [];
  const path = [...above, value];
  if (Array.isArray(value)) return value.flatMap((item, index) => jsonIssues(item, `${at}[${index}]`, path));
  if (hasOwnForm(value)) return [];
  return Object.entries(value).flatMap(([name, field]) => jsonIssues(field, `${at}.${name}`, path));
}

function hasOwnForm(value: object): boolean {
  return typeof (value as { toJSON?: unknown }).toJSON === "function";
}

function oddness(value: unknown): string | null {
  switch (typeof value) {
    case "undefined":
      return "undefined; leave it out, or write null";
    case "bigint":
      return "a BigInt; write it as a text";
    case "function":
    case "symbol":
      return `a ${typeof value}`;
    case "number":
      return Number.isFinite(value) ? null : `${value}; write null`;
    case "object":
      return value === null || Array.isArray(value) ? null : oddObject(value);
    case "string":
    case "boolean":
      return null;
  }
}

function oddObject(value: object): string | null {
  if (value instanceof Date) return "a Date; write its toISOString()";
  const kind = Object.prototype.toString.call(value).slice("[object ".length, -1);
  return kind === "Object" || hasOwnForm(value) ? null : `a ${kind}; write a list or an object`;
}
