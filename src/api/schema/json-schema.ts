/**
 * Converts zod schemas, the single source, to the JSON Schema that Ajv and fast-json-stringify compile once at start.
 */

import { z } from "zod";

export type JsonSchema = { [keyword: string]: unknown };

/** `input`: as a caller writes it (defaults may be left out). `output`: as we answer. */
export function jsonSchema(schema: z.ZodType, io: "input" | "output"): JsonSchema {
  const converted = z.toJSONSchema(schema, { io, target: "draft-7", unrepresentable: "any" }) as JsonSchema;
  delete converted["$schema"];
  return plain(converted) as JsonSchema;
}

/**
 * Rewrites "X or null" from two branches into one type list. The serializer would else run a validator for every such
 * field of every reply to find the branch.
 */
function plain(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(plain);
  if (node === null || typeof node !== "object") return node;
  const copy: JsonSchema = {};
  for (const [keyword, value] of Object.entries(node)) copy[keyword] = plain(value);
  const branches = copy["anyOf"];
  if (!Array.isArray(branches) || branches.length !== 2) return copy;
  const [main, other] = branches as [JsonSchema, JsonSchema];
  if (other["type"] !== "null" || typeof main["type"] !== "string") return copy;
  delete copy["anyOf"];
  const merged: JsonSchema = { ...main, ...copy, type: [main["type"], "null"] };
  if (Array.isArray(main["enum"])) merged["enum"] = [...(main["enum"] as unknown[]), null];
  return merged;
}
