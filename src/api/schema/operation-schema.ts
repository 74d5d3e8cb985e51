/**
 * The schemas of an operation: for the OpenAPI document, and compiled for requests and replies by the compilers that
 * Fastify uses, on the first use of an operation.
 */

import type compilerOf from "@fastify/ajv-compiler";
import type fastJson from "fast-json-stringify";
import { loadPackage } from "../../platform/load-package.ts";
import { invalidInput, type Finding, type InvalidPart } from "./invalid-input.ts";
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

/** Values are taken as they are: coercion would make 0 of an empty text. */
const AJV_OPTIONS = {
  coerceTypes: false,
  removeAdditional: false,
  useDefaults: true,
  verbose: true,
} as const;

type Compiler = (route: { readonly schema: unknown }) => Validate;
const compilers = new Map<boolean, Compiler>();

function compile(schema: unknown, allErrors: boolean): Validate {
  let compiler = compilers.get(allErrors);
  if (!compiler) {
    const factory = loadPackage<typeof compilerOf>("@fastify/ajv-compiler")();
    compiler = factory({}, { customOptions: { ...AJV_OPTIONS, allErrors } }) as Compiler;
    compilers.set(allErrors, compiler);
  }
  return compiler({ schema });
}

/** A larger request is told its first mistake alone: a million wrong fields would be a million findings in memory. */
const EXPLAINED_MAX = 5_000;

/** Whether a value has at most so many values in it; those are counted off `left`. */
function isSmall(value: unknown, left = { count: EXPLAINED_MAX }): boolean {
  if (--left.count < 0) return false;
  if (typeof value !== "object" || value === null) return true;
  return Object.values(value).every((each) => isSmall(each, left));
}

export interface PreparedOperation {
  /** Throws BAD_REQUEST or BAD_ID with the field at fault. Fills in defaults, and makes numbers of the query's texts. */
  validate(input: Pick<Input<any, any, any>, "params" | "body" | "query">): void;
  write(status: number, body: unknown): string;
}

const known = new WeakMap<Operation, PreparedOperation>();

export function prepared(operation: Operation): PreparedOperation {
  let found = known.get(operation);
  if (!found) known.set(operation, (found = prepare(schemaOf(operation))));
  return found;
}

const PARTS = [
  ["params", "params"],
  ["body", "body"],
  ["querystring", "query"],
] as const;

function prepare(schema: JsonSchema): PreparedOperation {
  const parts = PARTS.filter(([part]) => schema[part] !== undefined).map(([part, field]) => ({
    part,
    field: field as "body",
    validate: compile(schema[part], false),
    /** Compiled when it is needed: most operations are never called with a mistake. */
    explain: once(() => compile(schema[part], true)),
  }));
  const query = schema["querystring"] as { properties: Record<string, JsonSchema> } | undefined;
  const numbers = Object.entries(query?.properties ?? {})
    .filter(([, { type }]) => type === "integer")
    .map(([name]) => name);
  const replies = schema["response"] as Record<string, JsonSchema>;
  const writers = new Map<number, Write>();
  return {
    validate(input) {
      for (const name of numbers) {
        const text: unknown = input.query[name];
        if (typeof text === "string" && /^-?\d{1,16}$/.test(text)) input.query[name] = Number(text);
      }
      let refused: InvalidPart[] | null = null;
      for (const { part, field, validate, explain } of parts) {
        const value: unknown = input[field] ?? null;
        if (validate(value) !== false) continue;
        const all = isSmall(value) ? explain() : validate;
        if (all !== validate) all(value);
        (refused ??= []).push({ part, findings: all.errors ?? [] });
      }
      if (refused) throw invalidInput(refused);
    },
    write(status, body) {
      let write = writers.get(status);
      if (!write) {
        const reply = replies[String(status)];
        write = reply
          ? (loadPackage<typeof fastJson>("fast-json-stringify")(reply as never) as Write)
          : JSON.stringify;
        writers.set(status, write);
      }
      return write(body);
    },
  };
}

function once<T extends object>(make: () => T): () => T {
  let made: T | null = null;
  return () => (made ??= make());
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
