/** The Fastify instance that serves the operation table: limits, headers, errors. `http-server.ts` lets it listen. */

import type { Socket } from "node:net";
import { auditTrail } from "../access/audit-trail.ts";
import Fastify from "fastify";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { OperationExecutor } from "../api/execute.ts";
import { readJson } from "../api/schema/json-body.ts";
import type { PeerRequestHandler } from "../api/peer-request-handler.ts";
import { problemOf } from "../api/problem.ts";
import { OPERATIONS } from "../api/operation-table.ts";
import { BatonError, ERRORS, nearest, type ErrorCode } from "../core/errors.ts";
import { traceFields } from "../core/trace.ts";
import type { Log } from "../platform/log.ts";
import type { Platform } from "../platform/platform.ts";
import { traceIn } from "../transport/hop-headers.ts";
import { authentication, type AccessCheck, type Authentication } from "./authenticate.ts";
import { mountedAuthentication } from "./authenticate-mounted.ts";
import { eventStreams } from "./event-streams.ts";
import { originGuard, type OriginGuard } from "./origin-guard.ts";
import { outerCallerOf } from "./outer-callers.ts";
import { NO_COMPILERS, rateLimits } from "./rate-limits.ts";
import { replayedBody } from "./replayed-body.ts";
import { servePages, type DashboardOptions } from "./pages.ts";
import {
  bindOperation,
  countRequests,
  leaderHeaders,
  methodNotAllowed,
  type RequestSink,
} from "./operation-routes.ts";

export interface AppOptions {
  readonly executor: OperationExecutor;
  readonly host: string;
  readonly bodyLimitBytes: number;
  readonly peers?: Pick<PeerRequestHandler, "endStreams" | "streams"> | null;
  /** A prefix under which everything answers too; `/` for none. */
  readonly basePath?: string;
  readonly dashboard?: DashboardOptions;
  /** `application`: requests come from a server around this node, which has authenticated their callers (outer-callers.ts). */
  readonly access: AccessCheck | "application";
  /** Requests in a second of each caller; 0 for as many as they like. */
  readonly rateLimit?: number;
  readonly trustedProxies?: readonly string[];
  /** Callers reach this node by https alone: cookies are never sent over anything else. */
  readonly secure?: boolean;
  readonly sink?: RequestSink;
}

declare module "fastify" {
  interface FastifyInstance {
    openStreams: () => number;
  }
  interface FastifyRequest {
    bodyText: string;
  }
}

/** Slow senders hold a socket no longer than this; Node's own limits are 60 s and 300 s, looked at every 30 s. */
const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 30_000;
const CHECK_INTERVAL_MS = 1_000;
const HEADER_BYTES_MAX = 16_384;
const HEADERS_MAX = 100;
/** What a caller may call its request; anything else could fake a line of somebody's log. */
const REQUEST_ID = /^[A-Za-z0-9._:/+=-]{1,128}$/;

export async function buildApp(
  platform: Pick<Platform, "clock" | "log">,
  options: AppOptions,
): Promise<FastifyInstance> {
  const { executor, peers = null } = options;
  const { services } = executor;
  const streams = eventStreams(platform);
  const closing = { now: false };
  const failWith = (error: unknown, request: FastifyRequest, reply: FastifyReply): void => {
    if (closing.now) reply.header("connection", "close");
    fail(error, request, reply, platform.log);
  };
  // `/baton/` as `/baton`, and `/` as the empty text.
  const prefix = (options.basePath ?? "/").replace(/\/+$/, "");
  const app = Fastify({
    ...NO_COMPILERS,
    ...(prefix !== "" && {
      rewriteUrl: ({ url = "/" }: { readonly url?: string }) =>
        url.startsWith(`${prefix}/`) ? url.slice(prefix.length) : url,
    }),
    logger: false,
    bodyLimit: options.bodyLimitBytes,
    requestTimeout: REQUEST_TIMEOUT_MS,
    // Requests on open connections are served to the end, with `Connection: close`.
    return503OnClosing: false,
    trustProxy: options.trustedProxies?.length ? [...options.trustedProxies] : false,
    routerOptions: { maxParamLength: HEADER_BYTES_MAX },
    genReqId: requestIds(services.identity.incarnation),
    frameworkErrors: failWith,
    clientErrorHandler: refuseMalformed,
    http: {
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      connectionsCheckingInterval: CHECK_INTERVAL_MS,
      maxHeaderSize: HEADER_BYTES_MAX,
    },
  });
  app.server.maxHeadersCount = HEADERS_MAX;

  app.decorateRequest("bodyText", "");
  app.decorateRequest("principal", null);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/json", { parseAs: "string" }, parseJsonBody);
  const living = (): number => services.membership.nodes().filter(({ alive }) => alive).length;
  const limits = rateLimits(options.rateLimit ?? 0, living);
  const audit = auditTrail(platform, services.journal);
  const { access } = options;
  const entrance =
    access === "application" ? mountedAuthentication(limits, audit) : authentication(access, limits, audit);
  app.addHook("onRoute", entrance.onRoute);
  app.addHook("onClose", () => audit.flush());
  const guard = originGuard(options.host, services.identity.name);
  app.addHook("onRequest", introduce(executor, guard, entrance));
  if (access === "application") app.addHook("preParsing", replayedBody);
  if (options.sink) app.addHook("onResponse", countRequests(options.sink));
  app.addHook("preClose", () => {
    closing.now = true;
    peers?.endStreams();
    return streams.endAll();
  });
  app.setErrorHandler(failWith);
  app.setNotFoundHandler((request, reply) => failWith(noSuchRoute(request), request, reply));

  app.decorate("openStreams", () => streams.size + (peers?.streams ?? 0));
  const routes = {
    executor,
    streams,
    closing,
    authentication: entrance,
    limits,
    audit,
    secure: options.secure ?? false,
    prefix,
  };
  for (const operation of OPERATIONS) bindOperation(app, operation, routes);
  servePages(app, services.version, options.dashboard ?? { enabled: false });
  if (prefix !== "") {
    checkPrefix(prefix, ["/docs", "/assets", ...OPERATIONS.map((operation) => operation.path)]);
    // The page's addresses are relative: without the slash they would lead past the prefix.
    const config = { access: "public" } as const;
    app.get(prefix, { config }, (_request, reply) => reply.redirect(`${prefix}/`, 308));
  }
  await app.ready();
  return app;
}

/** The text is kept with the value: a request that is forwarded goes as it came. */
function parseJsonBody(
  request: FastifyRequest,
  text: string,
  done: (error: Error | null, body?: unknown) => void,
): void {
  const encoding = request.headers["content-encoding"];
  if (encoding !== undefined && encoding !== "identity") {
    return done(
      new BatonError("UNSUPPORTED_MEDIA_TYPE", "compressed bodies are not accepted; send plain JSON"),
    );
  }
  request.bodyText = text;
  let body: unknown;
  try {
    body = readJson(text);
  } catch (error) {
    return done(error as Error);
  }
  done(null, body);
}

function requestIds(incarnation: string): (request: { headers: NodeJS.Dict<string | string[]> }) => string {
  const prefix = incarnation.slice(0, 8);
  let count = 0;
  return (request) => {
    const given = request.headers["x-request-id"];
    if (typeof given === "string" && REQUEST_ID.test(given)) return given;
    return `${prefix}-${(++count).toString(36)}`;
  };
}

/** What browsers are told of every answer: it is what it says, and it is never part of another site's page. */
const PLAIN_ANSWER = {
  "x-content-type-options": "nosniff",
  "content-security-policy": "frame-ancestors 'none'",
} as const;

/** The only hook of every request: who answers, under which epoch, and whether the caller is a web page. */
function introduce(executor: OperationExecutor, guard: OriginGuard, { onNotFound }: Authentication) {
  const { services } = executor;
  return function (
    this: FastifyInstance,
    request: FastifyRequest,
    reply: FastifyReply,
    done: (error?: Error) => void,
  ): void {
    reply.header("x-request-id", request.id);
    reply.headers(executor.nodeHeaders());
    reply.headers(PLAIN_ANSWER);
    // Also for streams, and for what is refused before it is known what was asked for.
    if (request.url.startsWith("/v1/")) reply.headers(leaderHeaders(services));
    if (services.health.draining) reply.header("connection", "close");
    const { method } = request;
    const isSafe = method === "GET" || method === "HEAD";
    const refusal = guard(request.headers, isSafe, outerCallerOf(request.raw)?.host);
    if (refusal !== null) done(refusal);
    else if (request.is404) {
      onNotFound.call(this, request, reply, (error?: Error) => {
        const wrong = error ?? methodNotAllowed(request);
        if (wrong instanceof BatonError && typeof wrong.details["allow"] === "string")
          reply.header("allow", wrong.details["allow"]);
        done(wrong ?? undefined);
      });
    } else done();
  };
}

function fail(error: unknown, request: FastifyRequest, reply: FastifyReply, log: Log): void {
  const problem = problemOf(error, request.id);
  if (problem.fault) {
    const { id: reqId, method, url: path, headers } = request;
    log.error({ error, reqId, method, path, ...traceFields(traceIn(headers)) }, "a request failed");
  }
  if (problem.retryAfter && !reply.hasHeader("retry-after")) reply.header("retry-after", "1");
  reply.code(problem.status).send(problem.body);
}

function noSuchRoute(request: FastifyRequest): BatonError {
  const path = request.url.split("?", 1)[0]!.slice(0, 200);
  const near = nearest(
    path,
    OPERATIONS.map((operation) => operation.path),
  );
  const advice = near === null ? "GET /docs shows what there is" : `did you mean ${near}?`;
  return new BatonError("NOT_FOUND", `there is nothing at ${request.method} ${path}; ${advice}`);
}

const MALFORMED: Readonly<Record<string, readonly [ErrorCode, string]>> = {
  HPE_HEADER_OVERFLOW: ["HEADERS_TOO_LARGE", `the headers are larger than ${HEADER_BYTES_MAX} bytes`],
  ERR_HTTP_REQUEST_TIMEOUT: ["REQUEST_TIMEOUT", "the request was sent too slowly"],
};

/** What Node's parser could not read never becomes a request, so it is answered on the bare socket. */
function refuseMalformed(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === "ECONNRESET" || socket.destroyed) return;
  if (socket.writable && socket.bytesWritten === 0) {
    const [code, message] =
      MALFORMED[error.code ?? ""] ?? (["BAD_REQUEST", "this is not valid HTTP/1.1"] as const);
    const body = JSON.stringify({ error: code, message });
    socket.write(
      `HTTP/1.1 ${ERRORS[code].status} ${code}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
    );
  }
  socket.destroySoon();
}

/** `/jobs` as a prefix would make `/jobs/{id}` mean something else. */
function checkPrefix(prefix: string, paths: readonly string[]): void {
  const first = prefix.split("/")[1];
  const taken = paths.find((path) => path.split("/")[1] === first);
  if (taken === undefined) return;
  throw new BatonError(
    "BAD_CONFIG",
    `http.base_path is ${prefix}, and the API has ${taken}; choose another, as /baton`,
    { field: "http.base_path" },
  );
}
