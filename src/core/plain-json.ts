/** Whether a value arrives as it was sent, when it is sent as JSON. */

import type { Issue } from "./errors.ts";

/**
 * The places where something is lost or changed on the way. A field that is undefined is not among them: it is left out,
 * and reads as undefined again.
 */
export function jsonIssues(value: unknown, at: string, above: readonly unknown[] = []): Issue[] {
  const odd = oddness(value);
  if (odd !== null) return [{ field: at, message: `${at} must be plain JSON, not ${odd}` }];
  if (typeof value !== "object" || value === null) return [];
  if (above.includes(value)) {
    return [{ field: at, message: `${at} must be plain JSON, and contains itself` }];
  }
  const path = [...above, value];
  if (Array.isArray(value)) return value.flatMap((item, index) => jsonIssues(item, `${at}[${index}]`, path));
  if ("toJSON" in value) return [];
  return Object.entries(value).flatMap(([name, field]) =>
    field === undefined ? [] : jsonIssues(field, `${at}.${name}`, path),
  );
}

function oddness(value: unknown): string | null {
  switch (typeof value) {
    case "undefined":
      return "undefined; write null";
    case "bigint":
      return "a BigInt; write it as a text";
    case "function":
    case "symbol":
      return `a ${typeof value}`;
    case "number":
      return Number.isFinite(value) ? null : `${value}; write null`;
    case "object":
      if (value instanceof Date) return "a Date; write its toISOString()";
      if (value instanceof Map || value instanceof Set) return "a Map or Set; write a list or an object";
      return null;
    case "string":
    case "boolean":
      return null;
  }
}
