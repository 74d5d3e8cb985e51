/** What JSON would lose or change of a value without a word: the handler would get something else than was submitted. */

export interface NotPlain {
  /** Of the part, beginning with a dot or a bracket; empty for the value itself. */
  readonly path: string;
  readonly why: string;
}

/** `visited`: for a value that JSON.stringify refuses, which may go in circles. Left out, each part is looked at where it stands. */
export function notPlain(value: unknown, visited?: Set<object>): NotPlain | null {
  switch (typeof value) {
    case "string":
    case "boolean":
      return null;
    case "number":
      return Number.isFinite(value) ? null : { path: "", why: `is ${value}, which JSON does not have` };
    case "bigint":
      return { path: "", why: "is a BigInt, which JSON does not have; write it as a text" };
    case "undefined":
      return { path: "", why: "is undefined, which JSON does not have; leave it out, or write null" };
    case "object":
      return value === null ? null : inObject(value, visited);
    case "function":
    case "symbol":
      return { path: "", why: `is a ${typeof value}, which JSON does not have` };
  }
}

/** JSON has an empty object for these. */
const WRITTEN_EMPTY = [Map, Set, WeakMap, WeakSet, RegExp, Error, Promise, ArrayBuffer];

function inObject(value: object, visited: Set<object> | undefined): NotPlain | null {
  if (visited?.has(value)) return null;
  visited?.add(value);
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) {
      const found = notPlain(value[index], visited);
      if (found) return { ...found, path: `[${index}]${found.path}` };
    }
    return null;
  }
  if (value instanceof Date) return { path: "", why: "is a Date; write it as a text: date.toISOString()" };
  // Its class says what it is in JSON.
  if (typeof (value as { toJSON?: unknown }).toJSON === "function") return null;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) {
    if (ArrayBuffer.isView(value) || WRITTEN_EMPTY.some((kind) => value instanceof kind))
      return { path: "", why: `is a ${value.constructor.name}, which JSON does not have` };
  }
  for (const key of Object.keys(value)) {
    const found = notPlain((value as Record<string, unknown>)[key], visited);
    if (found) return { ...found, path: `.${key}${found.path}` };
  }
  return null;
}
