/**
 * The schemas of an operation: for the OpenAPI document, and compiled for requests and replies by the compilers that
 * Fastify uses, on the first use of an operation.
 */

import type compilerOf from "@fastify/ajv-compiler";
import type fastJson from "fast-json-stringify";
import { loadPackage } from "../../platform/load-package.ts";
import { invalidInput, type Finding, type Part } from "./invalid-input.ts";
import type { Input, Operation } from "../operation.ts";
import { ProblemBody } from "../problem.ts";
import { z } from "zod";

export function schemaOf(operation: Operation): JsonSchema {
  /** A refusal with NOT_LEADER under `/v1` has no message. */
  const problem = { ...jsonSchema(ProblemBody, "output"), required: ["error"] };
  const response: JsonSchema = {};
  for (const [status, body] of Object.entries(operation.replies)) {
    response[status] = { description: operation.summary, ...jsonSchema(body as never, "output") };
  }
  response["4xx"] = { description: "A refusal", ...problem };
  response["5xx"] ??= { description: "A failure", ...problem };
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

type Validate = ((value: unknown) => unknown) & { errors?: readonly Finding[] | null };
type Write = (body: unknown) => string;

type Compile = (route: { readonly schema: unknown }) => Validate;
let compiler: Compile | null = null;

function compile(schema: unknown): Validate {
  return (compiler ??= newCompiler())({ schema });
}

/** Values are taken as they are: coercion would make 0 of an empty text. */
function newCompiler(): Compile {
  const customOptions = {
    coerceTypes: false,
    removeAdditional: false,
    useDefaults: true,
    allErrors: false,
    verbose: true,
  } as const;
  const factory = loadPackage<typeof compilerOf>("@fastify/ajv-compiler")();
  return factory({}, { customOptions }) as Compile;
}

const known = new WeakMap<Operation, PreparedOperation>();

export function prepared(operation: Operation): PreparedOperation {
  let found = known.get(operation);
  if (!found) known.set(operation, (found = new PreparedOperation(schemaOf(operation))));
  return found;
}

export class PreparedOperation {
  readonly #parts: readonly (readonly [Part, keyof Input<any, any, any>, Validate])[];
  readonly #numbers: readonly string[];
  readonly #replies: Readonly<Record<string, JsonSchema>>;
  readonly #write = new Map<number, Write>();

  constructor(schema: JsonSchema) {
    const parts = [
      ["params", "params"],
      ["body", "body"],
      ["querystring", "query"],
    ] as const;
    this.#parts = parts
      .filter(([part]) => schema[part] !== undefined)
      .map(([part, field]) => [part, field, compile(schema[part])]);
    const query = schema["querystring"] as { properties: Record<string, JsonSchema> } | undefined;
    this.#numbers = Object.entries(query?.properties ?? {})
      .filter(([, { type }]) => type === "integer")
      .map(([name]) => name);
    this.#replies = schema["response"] as Record<string, JsonSchema>;
  }

  /** Throws BAD_REQUEST or BAD_ID with the field at fault. Fills in defaults, and makes numbers of the query's texts. */
  validate(input: Pick<Input<any, any, any>, "params" | "body" | "query">): void {
    for (const name of this.#numbers) {
      const text: unknown = input.query[name];
      if (typeof text === "string" && /^-?\d{1,16}$/.test(text)) input.query[name] = Number(text);
    }
    for (const [part, field, validate] of this.#parts) {
      if (validate(input[field as "body"] ?? null) === false) throw invalidInput(validate.errors ?? [], part);
    }
  }

  write(status: number, body: unknown): string {
    let write = this.#write.get(status);
    if (!write) {
      const schema = this.#replies[String(status)];
      write = schema
        ? (loadPackage<typeof fastJson>("fast-json-stringify")(schema as never) as Write)
        : JSON.stringify;
      this.#write.set(status, write);
    }
    return write(body);
  }
}

export type JsonSchema = { [keyword: string]: unknown };

/** `input`: as a caller writes it (defaults may be left out). `output`: as we answer. */
export function jsonSchema(schema: z.ZodType, io: "input" | "output"): JsonSchema {
  const converted = z.toJSONSchema(schema, { io, target: "draft-7", unrepresentable: "any" }) as JsonSchema;
  delete converted["$schema"];
  return plain(converted) as JsonSchema;
}

/** Makes one type list of "X or null". The serializer would else run a validator for each such field to find the branch. */
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
