/** What a form needs to know of a JSON Schema. Whatever it does not know is written as JSON. */

export interface Schema {
  readonly type?: string | readonly string[];
  readonly title?: string;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly default?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly format?: string;
  readonly pattern?: string;
  readonly items?: Schema;
  readonly additionalProperties?: boolean | Schema;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
}

export type Control =
  | { readonly kind: "text"; readonly lines: boolean }
  | { readonly kind: "number" }
  | { readonly kind: "boolean" }
  | { readonly kind: "choice"; readonly values: readonly unknown[] }
  | { readonly kind: "group"; readonly fields: readonly (readonly [string, Schema])[] }
  | { readonly kind: "json" };

/** Deeper than that, a form is harder to read than JSON. */
const DEPTH_MAX = 3;
/** Shorter texts have no need of a second line. */
const LINE_MAX = 120;

export function controlFor(given: Schema, depth = 0): Control {
  const schema = bare(given);
  if (schema.const !== undefined) return { kind: "choice", values: [schema.const] };
  if (schema.enum) return { kind: "choice", values: schema.enum };
  switch (schema.type) {
    case "string": {
      const short = schema.format !== undefined || schema.pattern !== undefined;
      return { kind: "text", lines: !short && (schema.maxLength ?? Infinity) > LINE_MAX };
    }
    case "number":
    case "integer":
      return { kind: "number" };
    case "boolean":
      return { kind: "boolean" };
    case "object": {
      const fields = Object.entries(schema.properties ?? {});
      return fields.length > 0 && depth < DEPTH_MAX ? { kind: "group", fields } : { kind: "json" };
    }
    case undefined:
    default:
      return { kind: "json" };
  }
}

/** One that may also be null is shown as if it could not: left empty it is left out. */
export function bare(schema: Schema): Schema {
  const choices = schema.anyOf ?? schema.oneOf;
  const others = choices?.filter((each) => each.type !== "null");
  if (others?.length === 1) return { ...schema, ...others[0], anyOf: undefined, oneOf: undefined };
  if (Array.isArray(schema.type)) {
    const types = (schema.type as readonly string[]).filter((each) => each !== "null");
    if (types.length === 1) return { ...schema, type: types[0]! };
  }
  return schema;
}

/** What the form begins with: the defaults, and what must be there and has only one value. */
export function beginWith(given: Schema): unknown {
  const schema = bare(given);
  if (schema.default !== undefined) return schema.default;
  if (schema.const !== undefined) return schema.const;
  if (schema.type !== "object" || !schema.properties) return undefined;
  const value: Record<string, unknown> = {};
  for (const [name, field] of Object.entries(schema.properties)) {
    const initial = beginWith(field);
    if (initial !== undefined) value[name] = initial;
    else if (bare(field).type === "boolean" && schema.required?.includes(name)) value[name] = false;
  }
  return value;
}

/** In words, behind the name of a field. */
export function hintOf(given: Schema): string {
  const { minimum, maximum, minLength, maxLength, format, description, type } = bare(given);
  const whole = type === "integer" ? "a whole number" : type === "number" ? "a number" : "";
  // What validators write into schemas for "any" is no hint.
  const low = minimum !== undefined && minimum > -Number.MAX_SAFE_INTEGER ? minimum : undefined;
  const high = maximum !== undefined && maximum < Number.MAX_SAFE_INTEGER ? maximum : undefined;
  return [
    description,
    whole,
    low !== undefined && high !== undefined && `from ${low} to ${high}`,
    low !== undefined && high === undefined && `${low} or more`,
    low === undefined && high !== undefined && `up to ${high}`,
    minLength !== undefined && minLength > 1 && `at least ${minLength} characters`,
    maxLength !== undefined && `at most ${maxLength.toLocaleString("en-US")} characters`,
    format && format.replaceAll("-", " "),
  ]
    .filter(Boolean)
    .join(", ");
}
