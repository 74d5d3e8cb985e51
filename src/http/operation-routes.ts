/** The operations as Fastify routes: reads a request, executes the operation (api/execute.ts), writes its reply. */

import type { ServerResponse } from "node:http";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { AuditTrail } from "../access/audit-trail.ts";
import type { Executed, OperationExecutor, OperationInput } from "../api/execute.ts";
import type { NodeServices } from "../api/node-services.ts";
import { prepared } from "../api/schema/operation-schema.ts";
import type { Operation } from "../api/operation.ts";
import { OPERATIONS } from "../api/operation-table.ts";
import { routerPath } from "../api/peer-request-handler.ts";
import { standing } from "../api/route.ts";
import { sessionCookie, type CookieScope } from "../api/bodies/session-cookie.ts";
import type { Caller } from "../controller/lease-waiters.ts";
import { BatonError } from "../core/errors.ts";
import { addressOf, inboundOf, isHttps, type Authentication } from "./authenticate.ts";
import type { EventStreams } from "./event-streams.ts";
import type { RateLimits } from "./rate-limits.ts";
import type { HttpMetrics } from "../observe/metrics/http-metrics.ts";

interface RoutesOptions {
  readonly executor: OperationExecutor;
  readonly streams: EventStreams;
  readonly authentication: Authentication;
  readonly limits: RateLimits;
  readonly audit: Pick<AuditTrail, "changed" | "counted" | "refused">;
  readonly secure: boolean;
  readonly prefix: string;
  /** Set when the server stops: an answer that keeps its connection alive would then hold up the end. */
  readonly closing: { readonly now: boolean };
}

export function bindOperation(app: FastifyInstance, operation: Operation, options: RoutesOptions): void {
  const { executor, streams, closing, authentication, limits } = options;
  const { mutates, permission, login, streams: hasEvents, large, waits } = operation;

  async function handler(request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
    const inbound = inboundOf(request);
    const { params, query, body, headers, principal } = request;
    const input: OperationInput = {
      params,
      query,
      body,
      headers,
      inbound,
      principal,
      request,
      ...((waits || hasEvents || large) && { caller: callerOf(reply.raw, authentication.stays(request)) }),
      ...(operation.tag === "access" && { cookie: cookieFor(request, options) }),
    };
    prepared(operation).validate(input);
    if (login) await limits.login(request, reply);
    const answer = await executor.execute(operation, input);
    // One that was made above the prefix would come along with this one, and of two neither counts.
    const outdated =
      login && input.cookie && input.cookie.path !== "/" ? { ...input.cookie, path: "/" } : null;
    return write(answer, request, reply, outdated && sessionCookie("", outdated));
  }

  function write(
    answer: Executed,
    request: FastifyRequest,
    reply: FastifyReply,
    cookie: string | null,
  ): unknown {
    if ("events" in answer) return streams.send(reply, answer.events, authentication.stays(request));
    if ("stream" in answer)
      return streams.relay(reply, answer, answer.stream, answer.stop, authentication.stays(request));
    if (closing.now) reply.header("connection", "close");
    reply.headers(answer.headers);
    if (cookie !== null) reply.header("set-cookie", cookie);
    if (answer.status !== 200) reply.code(answer.status);
    if (request.method !== "HEAD") return answer.body;
    reply.header("content-length", Buffer.byteLength(answer.body));
    return "";
  }

  app.route({
    // A HEAD of a stream would be a stream.
    method: operation.method === "GET" && !hasEvents ? ["GET", "HEAD"] : operation.method,
    url: routerPath(operation.path),
    config: { access: permission, operation },
    exposeHeadRoute: false,
    ...(mutates && { onResponse: audited(operation, options) }),
    // When the answer is known: another node may lead since the request came.
    ...(operation.tag === "controller" && {
      onSend: (_request: FastifyRequest, reply: FastifyReply, payload: unknown, done: DoneSending) => {
        reply.headers(leaderHeaders(executor.services));
        done(null, payload);
      },
    }),
    handler,
  });
}

/** After the answer, so that the caller does not wait for it. */
function audited(operation: Operation, { audit, executor }: RoutesOptions) {
  const { name, frequent = false, audits } = operation;
  return (request: FastifyRequest, reply: FastifyReply, done: () => void): void => {
    const { principal, params, query, body } = request;
    const { statusCode: status } = reply;
    // Refused by authentication: counted there. Without a principal only logins are recorded.
    if (principal === null && operation.permission !== "public") return done();
    // A login that was not even tried: strangers could fill the journal with them.
    if (principal === null && status !== 200 && status !== 401)
      audit.refused(addressOf(request), status === 429 ? "TOO_MANY_REQUESTS" : "BAD_REQUEST");
    else if (frequent) audit.counted({ operation: name, principal, status });
    else {
      // A body that was refused as such could be anything.
      const details = status === 400 ? undefined : audits?.({ body });
      const servedBy = reply.getHeader("x-baton-node");
      audit.changed({
        operation: name,
        principal,
        params: { ...(query as object), ...(params as object), ...details },
        status,
        address: addressOf(request),
        requestId: request.id,
        ...(typeof servedBy === "string" && servedBy !== executor.services.identity.name && { servedBy }),
      });
    }
    done();
  };
}

type DoneSending = (error: Error | null, payload: unknown) => void;

export function leaderHeaders(services: NodeServices): Record<string, string> {
  const { role, leader_epoch, leader_id } = standing(services);
  return {
    "x-baton-role": role,
    ...(leader_id && { "x-baton-leader-epoch": String(leader_epoch), "x-baton-leader-id": leader_id }),
  };
}

/** A cookie stays where the caller is: other programs behind the same proxy are none of its business. */
function cookieFor(request: FastifyRequest, { secure, prefix }: RoutesOptions): CookieScope {
  const isBelow = prefix !== "" && request.originalUrl.startsWith(`${prefix}/`);
  return { secure: secure || isHttps(request), path: isBelow ? prefix : "/" };
}

/** A caller whose token was revoked meanwhile is as good as gone. */
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

/** For a path of the table with another method: 405 and Allow, in place of 404. Null for a path that is not there. */
export function methodNotAllowed({ method, url }: Pick<FastifyRequest, "method" | "url">): BatonError | null {
  const path = url.split("?", 1)[0]!;
  const served = OPERATIONS.filter((operation) => covers(operation.path, path));
  if (served.length === 0) return null;
  const allowed = new Set<string>(served.map((operation) => operation.method));
  if (served.some((operation) => operation.method === "GET" && !operation.streams)) allowed.add("HEAD");
  const allow = [...allowed].sort().join(", ");
  return new BatonError("METHOD_NOT_ALLOWED", `${method} is not possible here; use ${allow}`, { allow });
}

function covers(pattern: string, path: string): boolean {
  const a = pattern.split("/");
  const b = path.split("/");
  return a.length === b.length && a.every((step, index) => step === b[index] || step.startsWith("{"));
}

export type RequestSink = Pick<HttpMetrics, "answered">;

/** For what no route is for: whatever callers make up must not become a label. */
const UNKNOWN_ROUTE = "other";

/** How long a stream lasted, or a call that waits for something to happen, says nothing of how fast anything is. */
export function countRequests(sink: RequestSink) {
  return (request: FastifyRequest, reply: FastifyReply, done: () => void): void => {
    const { url = UNKNOWN_ROUTE, config } = request.routeOptions;
    const { operation } = config;
    const isTimed = !operation?.streams && !operation?.waits;
    const took = isTimed ? reply.elapsedTime : null;
    sink.answered(request.method, operation?.path ?? url, reply.raw.statusCode, took);
    done();
  };
}
