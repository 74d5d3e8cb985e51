/** What JSON would lose or change of a value without a word: the handler would get something else than was submitted. */

import type { Issue } from "./errors.ts";

/** For a value that JSON.stringify has taken: one that contains itself has no end here. */
export function isPlainJson(value: unknown): boolean {
  if (oddness(value) !== null) return false;
  if (typeof value !== "object" || value === null) return true;
  if (Array.isArray(value)) return value.every(isPlainJson);
  return hasOwnForm(value) || Object.values(value).every(isPlainJson);
}

/** One for each place, and none for what a class with `toJSON` says of itself. `at`: the name of the value. */
export function jsonIssues(value: unknown, at: string): Issue[] {
  const issues: Issue[] = [];
  const seen = new Set<unknown>();
  const look = (part: unknown, field: string, above: readonly unknown[]): void => {
    const odd = above.includes(part) ? "a part of itself" : oddness(part);
    if (odd !== null) issues.push({ field, message: `${field} must be plain JSON, not ${odd}` });
    if (odd !== null || typeof part !== "object" || part === null || seen.has(part)) return;
    seen.add(part);
    const path = [...above, part];
    if (Array.isArray(part))
      for (const [index, item] of part.entries()) look(item, `${field}[${index}]`, path);
    else if (!hasOwnForm(part))
      for (const [name, item] of Object.entries(part)) look(item, `${field}.${name}`, path);
  };
  look(value, at, []);
  return issues;
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
  if (Object.getPrototypeOf(value) === Object.prototype) return null;
  if (value instanceof Date) return "a Date; write its toISOString()";
  // The language's own classes keep what they hold out of their fields.
  const ofLanguage = Symbol.toStringTag in value || value instanceof Error || value instanceof RegExp;
  if (!ofLanguage || hasOwnForm(value)) return null;
  return `a ${value.constructor.name}; write a list or an object`;
}
