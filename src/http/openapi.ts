/** The OpenAPI document, made of the table of operations. */

import type { Operation } from "../api/operation.ts";
import { schemaOf, type JsonSchema } from "../api/schema/operation-schema.ts";
import { SESSION_COOKIE } from "../api/bodies/session-cookie.ts";

const SECURITY_SCHEMES = {
  token: { type: "http", scheme: "bearer", description: "as `baton token create` prints it" },
  session: { type: "apiKey", in: "cookie", name: SESSION_COOKIE },
};

const TAGS = [
  { name: "jobs", description: "Submit jobs, look at them, steer them" },
  { name: "functions", description: "Run a task for a caller who waits" },
  { name: "queues", description: "Pause and resume queues" },
  { name: "schedules", description: "Jobs by the clock" },
  { name: "controller", description: "What agents do, and callers of whoever leads" },
  { name: "cluster", description: "The nodes together: who is there, who leads, how they fare" },
  { name: "access", description: "Who may do what: tokens, users and sessions" },
  { name: "node", description: "This node: health, role, promises" },
];

export function openApiDocument(version: string, operations: readonly Operation[]): JsonSchema {
  const paths: Record<string, JsonSchema> = {};
  for (const operation of operations)
    (paths[operation.path] ??= {})[operation.method.toLowerCase()] = described(operation);
  return {
    openapi: "3.1.0",
    info: {
      title: "Baton",
      version,
      description:
        'A highly available job cluster. Refusals are flat: {"error": CODE, "message": …}; test the code, never the text.',
    },
    components: { securitySchemes: SECURITY_SCHEMES },
    security: [{ token: [] }, { session: [] }],
    tags: TAGS,
    paths,
  };
}

function described(operation: Operation): JsonSchema {
  const { params, querystring, body, response, ...rest } = schemaOf(operation) as Record<string, JsonSchema>;
  const parameters = [...parametersOf(params, "path"), ...parametersOf(querystring, "query")];
  return {
    ...rest,
    ...(parameters.length > 0 && { parameters }),
    ...(body && { requestBody: { required: !isOptional(body), content: asJson(body) } }),
    responses: Object.fromEntries(
      Object.entries(response as Record<string, JsonSchema>).map(([status, { description, ...schema }]) => [
        status.toUpperCase(),
        { description, content: asJson(schema) },
      ]),
    ),
  };
}

function parametersOf(schema: JsonSchema | undefined, place: "path" | "query"): JsonSchema[] {
  const required = (schema?.["required"] ?? []) as readonly string[];
  const properties = (schema?.["properties"] ?? {}) as Readonly<Record<string, JsonSchema>>;
  return Object.entries(properties).map(([name, { description, ...rest }]) => ({
    name,
    in: place,
    required: place === "path" || required.includes(name),
    ...(description !== undefined && { description }),
    schema: rest,
  }));
}

/** A body that may be null may be left out. */
function isOptional({ type }: JsonSchema): boolean {
  return Array.isArray(type) && type.includes("null");
}

function asJson(schema: JsonSchema): JsonSchema {
  return { "application/json": { schema } };
}
