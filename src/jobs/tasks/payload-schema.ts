/** The JSON Schema of a task's payload, for forms, in the way of the library of its schema. Null where there is none. */

import type { StandardSchemaV1 } from "@standard-schema/spec";
import { z } from "zod";

export type JsonSchema = Readonly<Record<string, unknown>>;

/** A larger schema is no form that a person fills in. */
const LENGTH_MAX = 65_536;
const TARGET = "draft-2020-12";

const known = new WeakMap<object, { readonly schema: JsonSchema | null }>();

export function payloadSchema(schema: StandardSchemaV1 | undefined): JsonSchema | null {
  if (!schema) return null;
  let found = known.get(schema);
  if (!found) known.set(schema, (found = { schema: convert(schema) }));
  return found.schema;
}

interface Convertible {
  readonly "~standard": StandardSchemaV1["~standard"] & {
    /** Of libraries that keep the extension of the standard for it. */
    readonly jsonSchema?: { input?: (options: { target: string }) => unknown };
  };
  /** Of zod, before it kept that. */
  readonly _zod?: unknown;
  /** Of arktype. */
  readonly toJsonSchema?: () => unknown;
}

function convert(schema: StandardSchemaV1): JsonSchema | null {
  const given = schema as unknown as Convertible;
  const ways: (() => unknown)[] = [
    () => given["~standard"].jsonSchema?.input?.({ target: TARGET }),
    () =>
      given._zod === undefined
        ? null
        : z.toJSONSchema(schema as unknown as z.ZodType, {
            io: "input",
            target: TARGET,
            unrepresentable: "any",
          }),
    () => given.toJsonSchema?.(),
  ];
  for (const way of ways) {
    try {
      const answer = plain(way());
      if (answer) return answer;
    } catch {
      // The library says that it cannot: the next way may.
    }
  }
  return null;
}

function plain(answer: unknown): JsonSchema | null {
  if (typeof answer !== "object" || answer === null) return null;
  const text = JSON.stringify(answer);
  if (text.length > LENGTH_MAX) return null;
  const schema = JSON.parse(text) as Record<string, unknown>;
  delete schema["$schema"];
  delete schema["~standard"];
  return schema;
}
