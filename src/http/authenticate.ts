/**
 * Authenticates callers over HTTP and checks their permission. It is the first hook of every route, whichever module
 * declares the route; a route without a declared permission needs `read`. A call counts as a node's only by its
 * verified signature: `internal=1` alone, or any other part of a query or a header, means nothing and is dropped.
 *
 *   open (loopback) -------------------------------------------> accepted, as `loopback`
 *   public ----------------------------------------------------> accepted, without a principal
 *   signed by a node, to the table -----> [body read, signature] -> accepted, as the principal that the node names
 *   token or cookie --> known? --no--> 401
 *                         '--yes--> allowed? --no--> 403
 *                                       '--yes--> accepted
 */

import type { FastifyReply, FastifyRequest, onRequestHookHandler, RouteOptions } from "fastify";
import type { Access, PresentedCredential } from "../access/access.ts";
import type { AuditTrail } from "../access/audit-trail.ts";
import type { OperationExecutor } from "../api/execute.ts";
import { sessionIn } from "../api/bodies/session-cookie.ts";
import { principalText, requirePermission } from "../core/access/permissions.ts";
import type { NeededPermission, Principal } from "../core/access/permissions.ts";
import { BatonError } from "../core/errors.ts";
import type { Authenticator } from "../transport/signing/authenticator.ts";
import {
  dropInternal,
  NO_FORWARD_HEADER,
  OUTSIDE,
  PEER_REFUSAL_HEADER,
  type Inbound,
} from "../transport/hop-headers.ts";
import { HEADER } from "../transport/signing/signing.ts";
import type { RateLimits } from "./rate-limits.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** Null for nobody: public routes, and until a signature was looked at. */
    principal: Principal | null;
    /** Null for callers from outside. */
    peerInbound: Inbound | null;
  }
  interface FastifyContextConfig {
    /** What a caller must be allowed to do; `read` if it is left out. `peer`: the route looks at signatures by itself. */
    access?: NeededPermission | "peer";
    /** The route asks `inboundOf` before it does anything: a node's signature covers the body. */
    hop?: true;
  }
}

export interface SignedRequest {
  readonly method: string;
  /** With its query, as it came. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/**
 * Null: there is no signature, so it is a caller from outside. `refused`: there is one, and it is not believed. With `headers`,
 * only those were signed, and whatever else came along may have been added on the way.
 */
export type Verdict =
  | { readonly from: string; readonly headers?: Readonly<Record<string, string>> }
  | { readonly refused: string }
  | null;
export type Authenticate = (request: SignedRequest) => Verdict | Promise<Verdict>;

export function authenticateBy(authenticator: Pick<Authenticator, "check">): Authenticate {
  return (request) => {
    const judged = authenticator.check(request);
    switch (judged.verdict) {
      case "accepted":
        return { from: judged.from.name, headers: judged.headers };
      case "refused":
        return { refused: judged.reason };
      case "outside":
        return null;
    }
  };
}

export type AccessCheck = Pick<Access, "open" | "anybody" | "stale" | "identify" | "identifyAgain" | "knows">;

export interface AuthenticationOptions {
  readonly access: AccessCheck;
  readonly limits: RateLimits;
  readonly audit: Pick<AuditTrail, "refused">;
  readonly executor: Pick<OperationExecutor, "inboundFrom">;
  /** Checks signatures of nodes; null where there are no others that sign. */
  readonly authenticate: Authenticate | null;
}

export class AuthenticationHook {
  /** For a path that is not there: those who may not look are not told so. */
  readonly onNotFound: onRequestHookHandler;
  readonly #o: AuthenticationOptions;

  constructor(options: AuthenticationOptions) {
    this.#o = options;
    this.onNotFound = this.#hook("read", false);
  }

  /** For Fastify's `onRoute`: nothing that is served can forget to ask. */
  readonly onRoute = (route: RouteOptions): void => {
    let hook: onRequestHookHandler | null = null;
    const first: onRequestHookHandler = function (request, reply, done) {
      hook ??= made();
      hook.call(this, request, reply, done);
    };
    // Not before the first request: those who declare routes may still say what they need, in hooks of their own.
    const made = (): onRequestHookHandler => {
      const { access: needs = "read", hop = false } = route.config ?? {};
      return needs === "peer" ? (_request, _reply, done) => done() : this.#hook(needs, hop);
    };
    const others = route.onRequest === undefined ? [] : [route.onRequest].flat();
    route.onRequest = [first, ...(others as onRequestHookHandler[])];
  };

  /** For a route with `hop`, once its body is read: how the request got here. Throws the refusal. */
  async inboundOf(request: FastifyRequest, reply: FastifyReply, needs: NeededPermission): Promise<Inbound> {
    if (isInternal(request)) await this.#checkSignature(request, reply, needs);
    const { peerInbound, headers, principal } = request;
    if (peerInbound !== null) return peerInbound;
    return { ...OUTSIDE, mayForward: headers[NO_FORWARD_HEADER] === undefined, principal };
  }

  async #checkSignature(
    request: FastifyRequest,
    reply: FastifyReply,
    needs: NeededPermission,
  ): Promise<void> {
    const { authenticate, executor } = this.#o;
    const query = request.query as Record<string, unknown>;
    const verdict = authenticate === null ? null : await authenticate(signed(request, request.bodyText));
    if (verdict === null) {
      dropInternal(query);
      if (request.principal === null && needs !== "public") await this.#admit(request, reply, needs);
      return;
    }
    if ("refused" in verdict) throw notBelieved(reply, verdict.refused);
    const { from, headers } = verdict;
    if (headers) dropOthers(request.headers, headers);
    const inbound = executor.inboundFrom(from, query, request.headers);
    request.peerInbound = inbound;
    request.principal = inbound.principal;
    requirePermission(inbound.principal, needs);
  }

  /**
   * For an answer that goes on for long: whether its reader may stay, to be asked now and then. Null where nothing was shown, or where it
   * was shown to another node, which asks.
   */
  stays(request: FastifyRequest): (() => boolean) | null {
    const { access } = this.#o;
    if (request.peerInbound !== null || (request.principal?.id ?? null) === null) return null;
    const shown = shownIn(request);
    return shown && (() => access.knows(shown));
  }

  #hook(needs: NeededPermission, hop: boolean): onRequestHookHandler {
    const { access, limits, authenticate } = this.#o;
    const { limitsRequests } = limits;
    return (request, reply, done) => {
      const { headers } = request;
      if (access.open && !isPassedOn(headers)) request.principal = access.anybody;
      else if (needs === "public") return done();
      else if (hop && authenticate && headers[HEADER.signature] !== undefined && isInternal(request))
        return done();
      else {
        const shown = shownIn(request);
        const known = shown && access.identify(shown);
        if (!known) return void settle(this.#admit(request, reply, needs), done);
        try {
          this.#enter(known, shown, request, reply, needs);
        } catch (error) {
          return done(error as Error);
        }
      }
      if (!limitsRequests) done();
      else void settle(limits.request(request, reply), done);
    };
  }

  /** The slow way, for those who are not known at once. */
  async #admit(request: FastifyRequest, reply: FastifyReply, needs: NeededPermission): Promise<void> {
    const { access, limits, audit } = this.#o;
    const shown = shownIn(request);
    const known = shown && (await access.identifyAgain(shown));
    if (!known) {
      if (access.stale && shown) throw cannotCheck();
      audit.refused(addressOf(request), "UNAUTHENTICATED");
      if (shown !== null || request.headers.authorization !== undefined) await limits.failed(request, reply);
      reply.header("www-authenticate", 'Bearer realm="baton"');
      throw new BatonError("UNAUTHENTICATED", whyNot(request, access.open));
    }
    this.#enter(known, shown, request, reply, needs);
    await limits.request(request, reply);
  }

  #enter(
    known: Principal,
    shown: PresentedCredential,
    request: FastifyRequest,
    reply: FastifyReply,
    needs: NeededPermission,
  ): void {
    const { access, audit } = this.#o;
    try {
      if (shown.by === "cookie") checkOrigin(request, reply);
      requirePermission(known, needs);
    } catch (error) {
      audit.refused(addressOf(request), "FORBIDDEN", principalText(known));
      throw error;
    }
    // What cannot be read in the store cannot have been revoked there either, as far as this node knows.
    if (needs !== "read" && known.id !== null && access.stale) throw cannotCheck();
    request.principal = known;
  }
}

/** Few requests need it, so the others do not pay for a promise. */
async function settle(step: Promise<void>, done: (error?: Error) => void): Promise<void> {
  try {
    await step;
  } catch (error) {
    return done(error as Error);
  }
  done();
}

/** Null when nothing is shown, or nothing that could be meant: empty, another scheme, or several at once. */
function shownIn({ headers, raw }: FastifyRequest): PresentedCredential | null {
  const { authorization } = headers;
  if (authorization === undefined) {
    const text = sessionIn(headers.cookie);
    return text === null ? null : { by: "cookie", text, connection: raw.socket };
  }
  if (!/^bearer /i.test(authorization) || isDoubled(raw.rawHeaders)) return null;
  return { by: "bearer", text: authorization.slice(7).trim(), connection: raw.socket };
}

/** Node keeps the first of two, and whoever sent the other one may have been believed elsewhere. */
function isDoubled(raw: readonly string[]): boolean {
  let found = 0;
  for (let at = 0; at < raw.length; at += 2) {
    const name = raw[at]!;
    if (name.length === 13 && name.toLowerCase() === "authorization") found++;
  }
  return found > 1;
}

/** Whoever comes through a proxy is not on this machine, also where the proxy is. */
function isPassedOn(headers: FastifyRequest["headers"]): boolean {
  return (
    headers["x-forwarded-for"] !== undefined ||
    headers["forwarded"] !== undefined ||
    headers["x-real-ip"] !== undefined ||
    headers["via"] !== undefined
  );
}

function isInternal({ query }: FastifyRequest): boolean {
  return (query as Record<string, unknown>)["internal"] !== undefined;
}

/** A browser sends cookies by itself, so a change must come from a page of ours; that others' `Origin` is not, the guard has seen. */
function checkOrigin({ method, headers }: FastifyRequest, reply: FastifyReply): void {
  reply.header("cache-control", "no-store");
  if (method === "GET" || method === "HEAD") return;
  if (headers.origin !== undefined || headers["sec-fetch-site"] === "same-origin") return;
  throw new BatonError(
    "FORBIDDEN",
    "a change with a session's cookie must say where it comes from; send an Origin header, or use a token",
    { field: "origin" },
  );
}

function whyNot({ headers }: FastifyRequest, open: boolean): string {
  if (open)
    return "this came through a proxy, and a node that asks nobody serves only its own machine; set access.required: always, and send a token";
  if (headers.authorization === undefined && headers.cookie === undefined)
    return "this node asks who you are: send Authorization: Bearer TOKEN (see baton token create), or log in with POST /session";
  return "the token or session that you sent is not valid here: it is wrong, has expired, or was revoked";
}

function cannotCheck(): BatonError {
  return new BatonError(
    "STORE_UNAVAILABLE",
    "credentials cannot be checked now, because the store cannot be read; try again in a moment",
  );
}

function dropOthers(all: Record<string, unknown>, kept: Readonly<Record<string, string>>): void {
  for (const name of Object.keys(all)) if (kept[name] === undefined) delete all[name];
}

export function signed(request: FastifyRequest, body: string): SignedRequest {
  // Node joins repeated headers, apart from set-cookie, which nobody signs.
  return {
    method: request.method,
    path: request.url,
    headers: request.headers as Record<string, string>,
    body,
  };
}

export function notBelieved(reply: FastifyReply, why: string): BatonError {
  reply.header(PEER_REFUSAL_HEADER, why.replaceAll(/[^\x20-\x7e]/g, "?"));
  return new BatonError("UNAUTHENTICATED", `this call of a node is not believed: ${why}`);
}

/** Longer than any address; what a proxy passed on unseen may be anything. */
const ADDRESS_LENGTH_MAX = 64;

/** One of IPv4 looks the same whether or not the node listens to IPv6 too. */
export function addressOf({ ip }: FastifyRequest): string {
  return ip.replace(/^::ffff:(?=\d+\.)/i, "").slice(0, ADDRESS_LENGTH_MAX);
}

/**
 * Whether the caller itself uses https. Of two proxies each may have added a word of its own, `https, http`, and then it is that of the
 * outermost one that is trusted; or the first word was passed on as it was.
 */
export function isHttps(request: FastifyRequest): boolean {
  const words = request.headers["x-forwarded-proto"];
  const hops = (request.ips?.length ?? 1) - 1;
  if (hops < 2 || typeof words !== "string") return isHttpsWord(request.protocol);
  const protocols = words.split(",");
  return isHttpsWord(protocols[Math.max(0, protocols.length - hops)]);
}

function isHttpsWord(word: string | undefined): boolean {
  return word?.trim().toLowerCase() === "https";
}
