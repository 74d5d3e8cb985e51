/** The table of operations as Fastify routes. All that can be done once is done here, at start. */

import type { FastifyInstance, FastifyReply, FastifyRequest, HTTPMethods } from "fastify";
import type { Admission } from "../api/admission.ts";
import type { Gate } from "../api/decide.ts";
import { jsonSchema } from "../api/json-schema.ts";
import type { JsonSchema } from "../api/json-schema.ts";
import { NO_HEADERS } from "../api/operation.ts";
import type { Input, Operation } from "../api/operation.ts";
import { ProblemBody } from "../api/problem.ts";
import type { NodeServices } from "../api/services.ts";
import { BatonError } from "../core/errors.ts";
import type { EventStreams } from "./event-streams.ts";

export interface RoutesOptions {
  readonly operations: readonly Operation[];
  readonly services: NodeServices;
  readonly admission: Admission;
  readonly gate: Gate;
  readonly streams: EventStreams;
  /** Set when the server stops: an answer that keeps its connection alive would then hold up the end. */
  readonly closing: { readonly now: boolean };
}

const PROBLEM = jsonSchema(ProblemBody, "output");

export function bindOperations(app: FastifyInstance, options: RoutesOptions): void {
  for (const operation of options.operations) bind(app, operation, options);
  refuseOtherMethods(app, options.operations);
}

function bind(app: FastifyInstance, operation: Operation, options: RoutesOptions): void {
  const { services, admission, gate, streams, closing } = options;
  const { target, mutates } = operation;
  const schema = schemaOf(operation);
  const query = schema["querystring"] as JsonSchema | undefined;

  async function handler(request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
    const input: Input<unknown, unknown, unknown> = {
      params: request.params,
      query: request.query,
      body: request.body,
      headers: request.headers,
    };
    const leave = admission.enter(operation);
    try {
      gate.admit(typeof target === "function" ? target(input) : target, mutates);
      const answer = await operation.handler(services, input);
      if ("events" in answer) return streams.send(reply, answer.events);
      if (closing.now) reply.header("connection", "close");
      if (answer.headers !== NO_HEADERS && answer.headers) reply.headers(answer.headers);
      if (answer.status !== 200) reply.code(answer.status);
      return answer.body;
    } finally {
      leave();
    }
  }

  app.route({
    method: operation.method,
    url: fastifyPath(operation.path),
    schema,
    // A HEAD of a stream would be a stream.
    exposeHeadRoute: operation.method === "GET" && operation.streams !== true,
    ...(query && { preValidation: numbersIn(query) }),
    handler,
  });
}

/** `/jobs/{id}` becomes `/jobs/:id`. */
function fastifyPath(path: string): string {
  return path.replaceAll(/\{(\w+)\}/g, ":$1");
}

function schemaOf(operation: Operation): JsonSchema {
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
function numbersIn(schema: JsonSchema) {
  const properties = Object.entries(schema["properties"] as Record<string, JsonSchema>);
  const names = properties.filter(([, property]) => property["type"] === "integer").map(([name]) => name);
  return (request: FastifyRequest, _reply: FastifyReply, done: () => void): void => {
    const query = request.query as Record<string, unknown>;
    for (const name of names) {
      const text = query[name];
      if (typeof text === "string" && /^-?\d{1,16}$/.test(text)) query[name] = Number(text);
    }
    done();
  };
}

const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] as const;

/** A known path with another method is told apart (405 and Allow) from a path that is not there (404). */
function refuseOtherMethods(app: FastifyInstance, operations: readonly Operation[]): void {
  for (const path of new Set(operations.map((operation) => operation.path))) {
    // A fixed path must not hide a placeholder's route for another method: GET /schedules/preview is a schedule.
    const served = operations.filter((operation) => covers(operation.path, path));
    const allowed = new Set<HTTPMethods>(served.map((operation) => operation.method));
    if (served.some((operation) => operation.method === "GET" && !operation.streams)) allowed.add("HEAD");
    const allow = [...allowed].sort().join(", ");
    app.route({
      method: METHODS.filter((method) => !allowed.has(method)),
      url: fastifyPath(path),
      schema: { hide: true },
      exposeHeadRoute: false,
      // Before the body is read: whatever it is, it does not matter.
      onRequest: (request, reply, done) => {
        reply.header("allow", allow);
        done(
          new BatonError("METHOD_NOT_ALLOWED", `${request.method} is not possible here; use ${allow}`, {
            allow,
          }),
        );
      },
      handler: () => {},
    });
  }
}

function covers(pattern: string, path: string): boolean {
  const a = pattern.split("/");
  const b = path.split("/");
  return a.length === b.length && a.every((step, index) => step === b[index] || step.startsWith("{"));
}
