/** A value of a schema to begin with: what must be there, and nothing else. */

import { bare, type Schema } from "../parts/schema.ts";

export function exampleOf(given: Schema): unknown {
  const schema = bare(given);
  if (schema.default !== undefined) return schema.default;
  if (schema.const !== undefined) return schema.const;
  if (schema.enum) return schema.enum[0];
  const first = (schema.anyOf ?? schema.oneOf)?.[0];
  if (first) return exampleOf(first);
  switch (schema.type) {
    case "object":
      return Object.fromEntries(
        (schema.required ?? []).map((name) => [name, exampleOf(schema.properties?.[name] ?? {})]),
      );
    case "array":
      return schema.items ? [exampleOf(schema.items)] : [];
    case "string":
      return "";
    case "number":
    case "integer":
      return schema.minimum !== undefined && schema.minimum > 0 ? schema.minimum : 0;
    case "boolean":
      return false;
    case undefined:
    default:
      return null;
  }
}
