/** The table of operations as Fastify routes. All that can be done once is done here, at start. */

import type { ServerResponse } from "node:http";
import type { FastifyInstance, FastifyReply, FastifyRequest, HTTPMethods } from "fastify";
import type { Admission } from "../api/admission.ts";
import type { Gate } from "../api/decide.ts";
import type { JsonSchema } from "../api/json-schema.ts";
import { NO_HEADERS } from "../api/operation.ts";
import { numbersIn, schemaOf } from "../api/operation-schema.ts";
import type { Input, Operation } from "../api/operation.ts";
import type { Caller } from "../controller/interest.ts";
import { sessionCookie } from "../api/session-cookie.ts";
import type { CookieScope } from "../api/session-cookie.ts";
import type { NodeServices } from "../api/node-services.ts";
import { BatonError } from "../core/errors.ts";
import { roleOf } from "../core/role.ts";
import type { AuditTrail } from "../access/audit-trail.ts";
import { addressOf, isHttps } from "./caller.ts";
import { settle } from "./entrance.ts";
import type { Entrance } from "./entrance.ts";
import type { EventStreams } from "./event-streams.ts";
import { inboundOf } from "./inbound.ts";
import type { readInbound } from "./inbound.ts";
import type { Limits } from "./limits.ts";
import type { PassOn } from "./pass-on.ts";

export interface RoutesOptions {
  readonly operations: readonly Operation[];
  readonly services: NodeServices;
  readonly admission: Admission;
  readonly gate: Gate;
  readonly streams: EventStreams;
  /** Null where every node answers for itself. */
  readonly passOn: PassOn | null;
  readonly readInbound: ReturnType<typeof readInbound>;
  readonly entrance: Entrance;
  readonly limits: Limits;
  readonly audit: Pick<AuditTrail, "changed" | "counted" | "refused">;
  /** Whether callers reach this node by https alone. */
  readonly secure: boolean;
  /** Under which all there is answers too; empty for none. */
  readonly prefix: string;
  /** Set when the server stops: an answer that keeps its connection alive would then hold up the end. */
  readonly closing: { readonly now: boolean };
}

export function bindOperations(app: FastifyInstance, options: RoutesOptions): void {
  for (const operation of options.operations) bind(app, operation, options);
  refuseOtherMethods(app, options.operations);
}

function bind(app: FastifyInstance, operation: Operation, options: RoutesOptions): void {
  const { services, admission, gate, streams, passOn, readInbound, closing, entrance, limits } = options;
  const { target, mutates, permission } = operation;
  const schema = schemaOf(operation);
  const query = schema["querystring"] as JsonSchema | undefined;

  async function handler(request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
    const inbound = inboundOf(request);
    const input: Input<unknown, unknown, unknown> = {
      params: request.params,
      query: request.query,
      body: request.body,
      headers: request.headers,
      inbound,
      principal: request.principal,
      ...(operation.waits && { caller: callerOf(reply.raw, entrance.stays(request)) }),
      ...(operation.tag === "access" && { cookie: cookieFor(request, options) }),
    };
    admission.check(operation, inbound);
    const where = typeof target === "function" ? target(input) : target;
    const decision = gate.decide(where, mutates, inbound);
    if (passOn !== null && decision.do === "forward") {
      const passedBack = await passOn.forward(operation, decision.to, where, request, reply);
      if (closing.now && !reply.sent) reply.header("connection", "close");
      return passedBack;
    }
    if (passOn !== null && decision.do === "place") {
      const passedBack = await passOn.place(operation, input, request, reply);
      if (closing.now) reply.header("connection", "close");
      if (passedBack !== undefined) return passedBack;
    }
    const leave = admission.enter(operation);
    try {
      if (decision.do === "refuse") throw gate.refusal(decision.code, where, inbound);
      const answer = await operation.handler(services, input);
      if ("events" in answer) return streams.send(reply, answer.events, entrance.stays(request));
      if (closing.now) reply.header("connection", "close");
      if (answer.headers !== NO_HEADERS && answer.headers) reply.headers(answer.headers);
      // One that was made above the prefix would come along with this one, and of two neither counts.
      if (operation.login && input.cookie && input.cookie.path !== "/")
        reply.header("set-cookie", sessionCookie("", { ...input.cookie, path: "/" }));
      if (answer.status !== 200) reply.code(answer.status);
      return answer.body;
    } finally {
      leave();
    }
  }

  async function signedOrNot(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    await readInbound(request, reply);
    await entrance.afterSignature(request, reply, permission);
  }

  const toNumbers = query ? numbersIn(query) : null;
  app.route({
    method: operation.method,
    url: fastifyPath(operation.path),
    schema,
    config: { access: permission, hop: true },
    // A HEAD of a stream would be a stream.
    exposeHeadRoute: operation.method === "GET" && operation.streams !== true,
    preValidation: (request, reply, done) => {
      const asked = request.query as Record<string, unknown>;
      toNumbers?.(asked);
      if (asked["internal"] === undefined) done();
      else void settle(signedOrNot(request, reply), done);
    },
    ...(operation.login && { preHandler: (request, reply) => limits.login(request, reply) }),
    ...(mutates && { onResponse: audited(operation, options) }),
    // Said when the answer is known: whoever waited for long may have waited for somebody who led.
    ...(operation.tag === "controller" && {
      onSend: (_request: FastifyRequest, reply: FastifyReply, payload: unknown, done: DoneSending) => {
        reply.headers(leaderHeaders(services));
        done(null, payload);
      },
    }),
    handler,
  });
}

/** After the answer, so that nobody waits for it. What a node passed on is told of there, where the caller came in. */
function audited(operation: Operation, { audit, services }: RoutesOptions) {
  const { name, frequent = false, audits } = operation;
  return (request: FastifyRequest, reply: FastifyReply, done: () => void): void => {
    const { principal, peerInbound, params, query, body } = request;
    const { statusCode: status } = reply;
    // Refused at the entrance: counted there. Nobody there, or too many: only told of where it is about a login.
    if (peerInbound !== null || (principal === null && operation.permission !== "public")) return done();
    // A login that was not even tried: strangers could fill the journal with them.
    if (principal === null && status !== 200 && status !== 401)
      audit.refused(addressOf(request), status === 429 ? "TOO_MANY_REQUESTS" : "BAD_REQUEST");
    else if (frequent) audit.counted({ operation: name, principal, status });
    else {
      // A body that was refused as such could be anything.
      const told = status === 400 ? undefined : audits?.({ body });
      const servedBy = reply.getHeader("x-baton-node");
      audit.changed({
        operation: name,
        principal,
        params: { ...(query as object), ...(params as object), ...told },
        status,
        address: addressOf(request),
        requestId: request.id,
        ...(typeof servedBy === "string" && servedBy !== services.identity.name && { servedBy }),
      });
    }
    done();
  };
}

type DoneSending = (error: Error | null, payload: unknown) => void;

/** What every answer under `/v1` says of who answers and who leads. */
export function leaderHeaders({ leadership, health }: NodeServices): Record<string, string> {
  const leader = leadership.current();
  return {
    "x-baton-role": roleOf(leadership.held(), health.draining),
    ...(leader && { "x-baton-leader-epoch": String(leader.epoch), "x-baton-leader-id": leader.leader }),
  };
}

/** A cookie stays where the caller is: other programs behind the same proxy are none of its business. */
function cookieFor(request: FastifyRequest, { secure, prefix }: RoutesOptions): CookieScope {
  const isBelow = prefix !== "" && request.originalUrl.startsWith(`${prefix}/`);
  return { secure: secure || isHttps(request), path: isBelow ? prefix : "/" };
}

/** Whoever may not stay is as good as gone: a token that was revoked meanwhile gets nothing any more. */
function callerOf(response: ServerResponse, stays: (() => boolean) | null): Caller {
  return {
    get gone() {
      return response.destroyed || response.socket?.destroyed === true || stays?.() === false;
    },
    onGone(leave) {
      response.once("close", leave);
      return () => response.off("close", leave);
    },
  };
}

/** `/jobs/{id}` becomes `/jobs/:id`. */
function fastifyPath(path: string): string {
  return path.replaceAll(/\{(\w+)\}/g, ":$1");
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
