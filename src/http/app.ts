/** The Fastify instance that serves the table: limits, headers, errors. It does not listen; `server.ts` does. */

import type { Socket } from "node:net";
import { AuditTrail } from "../access/audit-trail.ts";
import Fastify from "fastify";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { Admission } from "../api/admission.ts";
import { Gate } from "../api/decide.ts";
import { invalidInput } from "../api/invalid.ts";
import type { Finding } from "../api/invalid.ts";
import { traceIn } from "../transport/hop.ts";
import { Lateness } from "../api/lateness.ts";
import { PeerDoor } from "../api/peer-door.ts";
import type { Compilers, Validate } from "../api/peer-door.ts";
import { peerMounts } from "../api/peer-mounts.ts";
import { problemOf } from "../api/problem.ts";
import type { NodeServices } from "../api/node-services.ts";
import { OPERATIONS } from "../api/table.ts";
import type { InFlight } from "../cluster/in-flight.ts";
import { LOOPBACK } from "../core/access.ts";
import { BatonError, ERRORS, nearest } from "../core/errors.ts";
import type { ErrorCode } from "../core/errors.ts";
import { roleOf } from "../core/role.ts";
import { traceFields } from "../core/trace.ts";
import type { Clock } from "../platform/clock.ts";
import type { Log } from "../platform/log.ts";
import { noTracing, type Tracing } from "../platform/tracing.ts";
import type { PeerHandler } from "../transport/transport.ts";
import { checkPrefix, cutPrefix, prefixOf } from "./base-path.ts";
import { serveDashboard } from "./dashboard.ts";
import type { DashboardOptions } from "./dashboard.ts";
import { Entrance } from "./entrance.ts";
import type { Gatekeeper } from "./entrance.ts";
import { EventStreams } from "./event-streams.ts";
import { Guard, isLoopback } from "./guard.ts";
import { readInbound } from "./inbound.ts";
import type { Authenticate } from "./inbound.ts";
import { jsonBodyParser, jsonReader } from "./json-body.ts";
import type { ReadJson } from "./json-body.ts";
import { Limits } from "./limits.ts";
import { collectRoutes, serveDocs } from "./openapi.ts";
import { PassOn } from "./pass-on.ts";
import { servePeers } from "./peer-routes.ts";
import { countRequests, type RequestSink } from "./request-sink.ts";
import { bindOperations, leaderHeaders } from "./routes.ts";

export interface AppOptions {
  readonly services: NodeServices;
  readonly host: string;
  readonly bodyLimitBytes: number;
  readonly log: Log;
  readonly clock: Clock;
  /** Counts the changes that are being made, and refuses them once it is closed. */
  readonly inFlight?: Pick<InFlight, "enter">;
  /** Tells calls of nodes; without it there are none, and no `/peer/*`. */
  readonly authenticate?: Authenticate | null;
  /** What answers calls of nodes that are none of the table, by their path. */
  readonly mounts?: Readonly<Record<string, PeerHandler>>;
  /** A prefix under which everything answers too; `/` for none. */
  readonly basePath?: string;
  /** None unless told otherwise. */
  readonly dashboard?: DashboardOptions;
  /** Who may come in; left out by stand-ins only, and then nobody but the own machine. */
  readonly access?: Gatekeeper;
  /** Requests in a second of each caller; 0 for as many as they like. */
  readonly rateLimit?: number;
  /** Proxies whose word on the caller's address is believed. */
  readonly trustedProxies?: readonly string[];
  /** Whether callers reach this node by https alone: cookies are then never sent over anything else. */
  readonly secure?: boolean;
  readonly tracing?: Tracing;
  readonly sink?: RequestSink;
}

declare module "fastify" {
  interface FastifyInstance {
    /** For calls of nodes that come by another way than a request of HTTP, from a node that has proved its name. */
    peerDoor: PeerDoor;
    /** How many streams of events are open. */
    openStreams: () => number;
  }
}

/** Slow senders hold a socket no longer than this; Node's own limits are 60 s and 300 s, looked at every 30 s. */
const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 30_000;
const CHECK_INTERVAL_MS = 1_000;
const HEADER_BYTES_MAX = 16_384;
const HEADERS_MAX = 100;
/** What a caller may call its request; anything else could forge a line of somebody's log. */
const REQUEST_ID = /^[A-Za-z0-9._:/+=-]{1,128}$/;

export async function buildApp(options: AppOptions): Promise<FastifyInstance> {
  const { services, log } = options;
  const streams = new EventStreams(options);
  const closing = { now: false };
  const failWith = (error: unknown, request: FastifyRequest, reply: FastifyReply): void => {
    if (closing.now) reply.header("connection", "close");
    fail(error, request, reply, log);
  };
  const prefix = prefixOf(options.basePath ?? "/");
  const rewriteUrl = cutPrefix(prefix);
  const app = Fastify({
    ...(rewriteUrl && { rewriteUrl }),
    logger: false,
    bodyLimit: options.bodyLimitBytes,
    requestTimeout: REQUEST_TIMEOUT_MS,
    // Requests on open connections are served to the end, with `Connection: close`.
    return503OnClosing: false,
    trustProxy: options.trustedProxies?.length ? [...options.trustedProxies] : false,
    routerOptions: { maxParamLength: HEADER_BYTES_MAX },
    genReqId: requestIds(services.identity.incarnation),
    ajv: {
      customOptions: {
        coerceTypes: false,
        removeAdditional: false,
        useDefaults: true,
        allErrors: false,
        verbose: true,
      },
    },
    schemaErrorFormatter: (errors, part) => invalidInput(errors as unknown as Finding[], part),
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

  const readJson = jsonReader(app);
  app.decorateRequest("bodyText", "");
  app.decorateRequest("peerInbound", null);
  app.decorateRequest("principal", null);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/json", { parseAs: "string" }, jsonBodyParser(readJson));
  const { authenticate = null, mounts = {}, clock, tracing = noTracing } = options;
  const limits = await Limits.open(app, {
    perSecond: options.rateLimit ?? 0,
    nodes: () => services.membership.nodes().filter(({ alive }) => alive).length,
  });
  const audit = new AuditTrail({ journal: services.journal, clock });
  const access = options.access ?? nobodyBut(isLoopback(options.host));
  const entrance = new Entrance({ access, limits, audit, peers: authenticate !== null });
  app.addHook("onRoute", entrance.onRoute);
  app.addHook("onClose", () => audit.flush());
  const guard = new Guard({ host: options.host, name: services.identity.name });
  app.addHook("onRequest", introduce(services, guard, entrance));
  if (options.sink) app.addHook("onResponse", countRequests(options.sink, OPERATIONS));
  app.addHook("preClose", () => {
    closing.now = true;
    return streams.endAll();
  });
  app.setErrorHandler(failWith);
  app.setNotFoundHandler((request, reply) => failWith(noSuchRoute(request), request, reply));

  await collectRoutes(app, services.version);
  const admission = new Admission(services, options.inFlight ?? null);
  const gate = new Gate(services);
  const { peers = null } = services;
  const lateness = new Lateness(clock);
  const passOn = peers ? new PassOn({ services, peers, admission, streams, entrance, tracing }) : null;
  const lateBy = (from: string, sentAt: number): number => lateness.by(from, sentAt);
  const shared = { operations: OPERATIONS, services, admission, gate };
  const door = new PeerDoor({
    ...shared,
    compilers: compilersOf(app, readJson),
    events: (events, reader) => streams.bytes(events, reader),
    mounts: { ...peerMounts(services), ...mounts },
    lateness,
    clock,
    log,
  });
  app.decorate("peerDoor", door);
  app.decorate("openStreams", () => streams.size);
  bindOperations(app, {
    ...shared,
    streams,
    passOn,
    readInbound: readInbound(authenticate, { clock, lateBy }),
    closing,
    entrance,
    limits,
    audit,
    secure: options.secure ?? false,
    prefix,
  });
  if (authenticate) await servePeers(app, { door, authenticate, streams });
  await serveDocs(app);
  if (options.dashboard) await serveDashboard(app, options.dashboard);
  if (prefix !== "") {
    checkPrefix(prefix, ["/docs", "/assets", ...OPERATIONS.map((operation) => operation.path)]);
    // The page's addresses are relative: without the slash they would lead past the prefix.
    const config = { access: "public" } as const;
    app.get(prefix, { schema: { hide: true }, config }, (_request, reply) =>
      reply.redirect(`${prefix}/`, 308),
    );
  }
  await app.ready();
  return app;
}

/** Fastify's own, as they are once it has compiled the routes. */
function compilersOf(app: FastifyInstance, readJson: ReadJson): Compilers {
  const where = { method: "POST", url: "/peer", httpPart: "body" };
  return {
    validator: (schema) => app.validatorCompiler!({ schema, ...where }) as Validate,
    serializer: (schema) => app.serializerCompiler!({ schema, ...where }) as (value: unknown) => string,
    readJson,
  };
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

/** Without access, as tests build it: the own machine, and else nobody. */
function nobodyBut(loopback: boolean): Gatekeeper {
  return {
    open: loopback,
    anybody: LOOPBACK,
    stale: false,
    identify: () => null,
    identifyAgain: async () => null,
    knows: () => false,
  };
}

/** What browsers are told of every answer: it is what it says, and it is never part of another site's page. */
const PLAIN_ANSWER = {
  "x-content-type-options": "nosniff",
  "content-security-policy": "frame-ancestors 'none'",
} as const;

/** The only hook of every request: who answers, under which epoch, and whether the caller is a web page. */
function introduce(services: NodeServices, guard: Guard, entrance: Entrance) {
  const { identity, leadership, health } = services;
  return function (
    this: FastifyInstance,
    request: FastifyRequest,
    reply: FastifyReply,
    done: (error?: Error) => void,
  ): void {
    const draining = health.draining;
    reply.header("x-request-id", request.id);
    reply.header("x-baton-node", identity.name);
    reply.header("x-baton-role", roleOf(leadership.held(), draining));
    reply.header("x-baton-epoch", leadership.current()?.epoch ?? 0);
    reply.headers(PLAIN_ANSWER);
    // Also for streams, and for what is refused before it is known what was asked for.
    if (request.url.startsWith("/v1/")) reply.headers(leaderHeaders(services));
    if (draining) reply.header("connection", "close");
    const { method } = request;
    const refusal = guard.check(request.headers, method === "GET" || method === "HEAD");
    if (refusal !== null) done(refusal);
    else if (request.is404) entrance.onNotFound.call(this, request, reply, done);
    else done();
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
