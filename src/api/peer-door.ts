/**
 * The door for calls of other nodes, which have proved who they are by the time they get here: over a connection between nodes, in
 * memory, or behind `/peer/*` of the listener. It serves the same table of operations under the same rules as the HTTP routes, without
 * making an HTTP request of it once more; what the table does not know is answered by whoever is mounted under the path.
 */

import { allows, principalText } from "../core/access.ts";
import { BatonError } from "../core/errors.ts";
import { roleOf } from "../core/role.ts";
import { traceFields } from "../core/trace.ts";
import type { Clock } from "../platform/clock.ts";
import type { Log } from "../platform/log.ts";
import type { PeerHandler, PeerReply, ReceivedRequest } from "../transport/transport.ts";
import type { Admission } from "./admission.ts";
import type { Gate } from "./decide.ts";
import { arrival, traceIn } from "../transport/hop.ts";
import type { Inbound } from "../transport/hop.ts";
import { invalidInput } from "./invalid.ts";
import type { Finding, Part } from "./invalid.ts";
import type { JsonSchema } from "./json-schema.ts";
import type { Lateness } from "./lateness.ts";
import { numbersIn, schemaOf } from "./operation-schema.ts";
import type { EventReply, Input, Operation } from "./operation.ts";
import { PathTable } from "./path-table.ts";
import { problemOf } from "./problem.ts";
import type { NodeServices } from "./node-services.ts";

export type Validate = ((value: unknown) => unknown) & { errors?: readonly Finding[] | null };

/** What stands behind the HTTP routes too, so that both judge alike. */
export interface Compilers {
  validator(schema: JsonSchema): Validate;
  serializer(schema: JsonSchema): (value: unknown) => string;
  readJson(text: string): unknown;
}

export interface PeerDoorOptions {
  readonly operations: readonly Operation[];
  readonly services: NodeServices;
  readonly admission: Admission;
  readonly gate: Gate;
  readonly compilers: Compilers;
  readonly events: (events: EventReply["events"], reader?: AbortSignal) => AsyncIterable<Buffer>;
  /** By the path under which they answer: `/peer/election`. The longest that fits is taken. */
  readonly mounts: Readonly<Record<string, PeerHandler>>;
  readonly lateness: Lateness;
  readonly clock: Clock;
  readonly log: Log;
}

/** A row with all that can be done once. */
interface Prepared {
  readonly operation: Operation;
  readonly params: Validate | null;
  readonly body: Validate | null;
  readonly query: Validate | null;
  readonly toNumbers: ((query: Record<string, unknown>) => void) | null;
  readonly write: Map<number, (value: unknown) => string>;
}

const JSON_TYPE = "application/json; charset=utf-8";

export class PeerDoor {
  readonly #o: PeerDoorOptions;
  readonly #paths: PathTable<Operation>;
  readonly #prepared = new Map<Operation, Prepared>();
  readonly #mounts: readonly (readonly [path: string, handler: PeerHandler])[];
  #unnamed = 0;

  constructor(options: PeerDoorOptions) {
    this.#o = options;
    this.#paths = new PathTable(options.operations);
    this.#mounts = Object.entries(options.mounts).sort(([a], [b]) => b.length - a.length);
  }

  /** Never rejects: a node that could not carry a request out says so. */
  readonly handle: PeerHandler = async (request) => {
    const cut = request.path.indexOf("?");
    const path = cut < 0 ? request.path : request.path.slice(0, cut);
    try {
      if (path.startsWith("/peer/")) return await this.#mounted(path, request);
      return await this.#serve(path, cut < 0 ? "" : request.path.slice(cut + 1), request);
    } catch (error) {
      return this.#fail(error, request);
    }
  };

  #mounted(path: string, request: ReceivedRequest): Promise<PeerReply> {
    const found = this.#mounts.find(
      ([mount]) => path === mount || (path.startsWith(mount) && path[mount.length] === "/"),
    );
    if (!found) throw new BatonError("NOT_FOUND", `there is nothing for nodes at ${path.slice(0, 200)}`);
    return found[1](request);
  }

  async #serve(path: string, search: string, request: ReceivedRequest): Promise<PeerReply> {
    const { services, admission, gate, lateness, clock, compilers } = this.#o;
    const found = this.#paths.find(request.method, path);
    if (!found)
      throw new BatonError("NOT_FOUND", `there is nothing at ${request.method} ${path.slice(0, 200)}`);
    const row = this.#prepare(found.row);
    const { operation } = row;
    const query: Record<string, unknown> = queryOf(search);
    const lateBy = (from: string, sentAt: number): number => lateness.by(from, sentAt);
    const inbound = arrival(request.from, query, request.headers, { clock, lateBy });
    checkPermission(operation, inbound);
    const body = compilers.readJson(request.body);
    row.toNumbers?.(query);
    check(row.params, found.params, "params");
    check(row.body, body ?? null, "body");
    check(row.query, query, "querystring");
    const input: Input<unknown, unknown, unknown> = {
      params: found.params,
      query,
      body,
      headers: request.headers,
      inbound,
      principal: inbound.principal,
    };
    admission.check(operation, inbound);
    const leave = admission.enter(operation);
    try {
      const target = typeof operation.target === "function" ? operation.target(input) : operation.target;
      const decision = gate.decide(target, operation.mutates, inbound);
      if (decision.do === "refuse") throw gate.refusal(decision.code, target, inbound);
      // Whoever passed it on has decided that it ends here.
      if (decision.do !== "serve") throw gate.refusal("LOOP", target, inbound);
      const answer = await operation.handler(services, input);
      if ("events" in answer) {
        const headers = this.#headers(request, "text/event-stream; charset=utf-8");
        headers["cache-control"] = "no-cache, no-transform";
        return { status: 200, headers, stream: this.#o.events(answer.events, request.signal) };
      }
      const headers = this.#headers(request, JSON_TYPE);
      if (answer.headers) Object.assign(headers, answer.headers);
      const { status, body: told } = answer;
      const isText = typeof told === "string" && headers["content-type"]!.startsWith("text/");
      return { status, headers, body: isText ? told : this.#write(row, status, told) };
    } finally {
      leave();
    }
  }

  #prepare(operation: Operation): Prepared {
    const known = this.#prepared.get(operation);
    if (known) return known;
    const schema = schemaOf(operation);
    const validator = (part: string): Validate | null =>
      schema[part] === undefined ? null : this.#o.compilers.validator(schema[part] as JsonSchema);
    const query = schema["querystring"] as JsonSchema | undefined;
    const prepared: Prepared = {
      operation,
      params: validator("params"),
      body: validator("body"),
      query: validator("querystring"),
      toNumbers: query ? numbersIn(query) : null,
      write: new Map(),
    };
    this.#prepared.set(operation, prepared);
    return prepared;
  }

  #write({ operation, write }: Prepared, status: number, body: unknown): string {
    let known = write.get(status);
    if (!known) {
      const response = schemaOf(operation)["response"] as Record<string, JsonSchema>;
      known = this.#o.compilers.serializer(response[String(status)]!);
      write.set(status, known);
    }
    return known(body);
  }

  #headers(request: ReceivedRequest, contentType: string): Record<string, string> {
    const { identity, leadership, health } = this.#o.services;
    return {
      "content-type": contentType,
      "x-request-id": request.headers["x-request-id"] ?? this.#requestId(),
      "x-baton-node": identity.name,
      "x-baton-role": roleOf(leadership.held(), health.draining),
      "x-baton-epoch": String(leadership.current()?.epoch ?? 0),
    };
  }

  #requestId(): string {
    return `${this.#o.services.identity.incarnation.slice(0, 8)}-p${(++this.#unnamed).toString(36)}`;
  }

  #fail(error: unknown, request: ReceivedRequest): PeerReply {
    const headers = this.#headers(request, JSON_TYPE);
    const problem = problemOf(error, headers["x-request-id"]!);
    if (problem.fault) {
      const { method, path, from } = request;
      this.#o.log.error(
        {
          error,
          reqId: headers["x-request-id"],
          method,
          path,
          from,
          ...traceFields(traceIn(request.headers)),
        },
        "a request of a node failed",
      );
    }
    if (problem.retryAfter) headers["retry-after"] = "1";
    return { status: problem.status, headers, body: JSON.stringify(problem.body) };
  }
}

/** The node that passed it on has looked already; this one does not rely on its table being the same. */
function checkPermission({ permission }: Operation, { principal }: Inbound): void {
  if (principal && allows(principal.permission, permission)) return;
  throw new BatonError(
    "FORBIDDEN",
    `this needs the permission ${permission}, and ${principal ? `${principalText(principal)} has ${principal.permission}` : "nobody asks for it"}`,
    { needs: permission, has: principal?.permission ?? null },
  );
}

function check(validate: Validate | null, value: unknown, part: Part): void {
  if (validate !== null && validate(value) === false) throw invalidInput(validate.errors ?? [], part);
}

function queryOf(search: string): Record<string, unknown> {
  const query = Object.create(null) as Record<string, unknown>;
  if (search === "") return query;
  for (const [name, value] of new URLSearchParams(search)) {
    const known = query[name];
    if (known === undefined) query[name] = value;
    else query[name] = Array.isArray(known) ? [...known, value] : [known, value];
  }
  return query;
}
