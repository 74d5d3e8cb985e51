/** A JSON Schema as an outline: names, types and what is said of them. */

import { hintOf, type Schema } from "../parts/schema.ts";

export function SchemaView({ schema }: { schema: Schema }) {
  const branches = schema.anyOf ?? schema.oneOf;
  if (branches) {
    return (
      <ul class="schema">
        {branches.map((branch) => (
          <li>
            <span class="muted">or</span> <Described schema={branch} />
          </li>
        ))}
      </ul>
    );
  }
  if (schema.items) return <SchemaView schema={schema.items} />;
  const { properties = {}, additionalProperties: others } = schema;
  return (
    <ul class="schema">
      {Object.entries(properties).map(([name, property]) => (
        <li key={name}>
          <code>{name}</code>
          {schema.required?.includes(name) && <span class="muted"> (required)</span>}{" "}
          <Described schema={property} />
        </li>
      ))}
      {typeof others === "object" && Object.keys(others).length > 0 && (
        <li>
          <span class="muted">any other name:</span> <Described schema={others} />
        </li>
      )}
    </ul>
  );
}

export function Described({ schema }: { schema: Schema }) {
  const { properties, anyOf, oneOf, items, additionalProperties } = schema;
  const isNested =
    (properties ?? anyOf ?? oneOf ?? items) !== undefined || typeof additionalProperties === "object";
  return (
    <>
      <span class="mono">{typeOf(schema)}</span> <span class="muted">{hintOf(schema)}</span>
      {isNested && <SchemaView schema={schema} />}
    </>
  );
}

export function typeOf({ type, items, enum: values, const: only, anyOf, oneOf }: Schema): string {
  if (only !== undefined) return JSON.stringify(only);
  if (values) return values.map((value) => JSON.stringify(value)).join(" | ");
  if (items) return `${typeOf(items)}[]`;
  if (type === undefined) return (anyOf ?? oneOf) ? "one of" : "any JSON";
  return [type].flat().join(" | ");
}
