/** A row of the table as JSON Schema, for whoever validates requests and writes answers. */

import { jsonSchema } from "./json-schema.ts";
import type { JsonSchema } from "./json-schema.ts";
import type { Operation } from "./operation.ts";
import { ProblemBody } from "./problem.ts";

/** A refusal with NOT_LEADER under `/v1` has no message. */
const PROBLEM = { ...jsonSchema(ProblemBody, "output"), required: ["error"] };

export function schemaOf(operation: Operation): JsonSchema {
  const response: JsonSchema = {};
  for (const [status, body] of Object.entries(operation.replies)) {
    response[status] = { description: operation.summary, ...jsonSchema(body as never, "output") };
  }
  response["4xx"] = { description: "A refusal", ...PROBLEM };
  response["5xx"] ??= { description: "A failure", ...PROBLEM };
  return {
    operationId: operation.name,
    summary: operation.summary,
    tags: [operation.tag],
    "x-permission": operation.permission,
    ...(operation.params && { params: jsonSchema(operation.params, "input") }),
    ...(operation.query && { querystring: jsonSchema(operation.query, "input") }),
    ...(operation.body && { body: jsonSchema(operation.body, "input") }),
    response,
  };
}

/**
 * A query string knows only text, so whole numbers are made of what looks like one. Bodies are taken at their word:
 * Ajv's own coercion would apply to both, and would make 0 out of an empty text.
 */
export function numbersIn(schema: JsonSchema): (query: Record<string, unknown>) => void {
  const properties = Object.entries(schema["properties"] as Record<string, JsonSchema>);
  const names = properties.filter(([, property]) => property["type"] === "integer").map(([name]) => name);
  return (query) => {
    for (const name of names) {
      const text = query[name];
      if (typeof text === "string" && /^-?\d{1,16}$/.test(text)) query[name] = Number(text);
    }
  };
}
