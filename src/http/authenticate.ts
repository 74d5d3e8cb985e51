/**
 * Authenticates callers over HTTP and checks their permission. It is the first hook of every route, whichever module
 * declares the route; a route without a declared permission needs `read`. Other nodes do not call over HTTP, so
 * `internal=1`, and every other query parameter of nodes, means nothing here and is dropped.
 *
 *   open (loopback) -----------> accepted, as `loopback`
 *   public --------------------> accepted, without a principal
 *   token or cookie --> known? --no--> 401
 *                         '--yes--> allowed? --no--> 403
 *                                       '--yes--> accepted
 */

import type { FastifyReply, FastifyRequest, onRequestHookHandler, RouteOptions } from "fastify";
import type { Operation } from "../api/operation.ts";
import type { Access, PresentedCredential } from "../access/access.ts";
import type { AuditTrail } from "../access/audit-trail.ts";
import { sessionIn } from "../api/bodies/session-cookie.ts";
import { LOOPBACK, principalText, requirePermission } from "../core/access/permissions.ts";
import type { NeededPermission, Principal } from "../core/access/permissions.ts";
import { BatonError } from "../core/errors.ts";
import {
  dropInternal,
  isPassedOn,
  NO_FORWARD_HEADER,
  OUTSIDE,
  type Inbound,
} from "../transport/hop-headers.ts";
import { outerCallerOf } from "./outer-callers.ts";
import type { RateLimits } from "./rate-limits.ts";

declare module "fastify" {
  interface FastifyRequest {
    principal: Principal | null;
  }
  interface FastifyContextConfig {
    access?: NeededPermission;
    operation?: Operation;
  }
}

export type AccessCheck = Pick<Access, "open" | "stale" | "identify" | "identifyAgain" | "knows">;

export interface Authentication {
  /** For Fastify's `onRoute`: nothing that is served can forget to ask. */
  onRoute(this: void, route: RouteOptions): void;
  /** For a path that is not there: those who may not look are not told so. */
  readonly onNotFound: onRequestHookHandler;
  /** For an answer that goes on for long: whether its reader may stay, to be asked now and then. Null where nothing was shown. */
  stays(request: FastifyRequest): (() => boolean) | null;
}

export function authentication(
  access: AccessCheck,
  limits: RateLimits,
  audit: Pick<AuditTrail, "refused">,
): Authentication {
  function hook(needs: NeededPermission): onRequestHookHandler {
    return (request, reply, done) => {
      const { headers } = request;
      if (access.open && !isPassedOn(headers)) request.principal = LOOPBACK;
      else if (needs === "public") return done();
      else {
        const shown = shownIn(request);
        const known = shown && access.identify(shown);
        if (!known) return void settle(admit(request, reply, needs), done);
        try {
          enter(known, shown, request, reply, needs);
        } catch (error) {
          return done(error as Error);
        }
      }
      if (!limits.request) done();
      else void settle(limits.request(request, reply), done);
    };
  }

  /** Asks the store, for those who are not known at once. */
  async function admit(request: FastifyRequest, reply: FastifyReply, needs: NeededPermission): Promise<void> {
    const shown = shownIn(request);
    const known = shown && (await access.identifyAgain(shown));
    if (!known) {
      if (access.stale && shown) throw cannotCheck();
      audit.refused(addressOf(request), "UNAUTHENTICATED");
      if (shown !== null || request.headers.authorization !== undefined) await limits.failed(request, reply);
      reply.header("www-authenticate", 'Bearer realm="baton"');
      throw new BatonError("UNAUTHENTICATED", whyNot(request, access.open));
    }
    enter(known, shown, request, reply, needs);
    await limits.request?.(request, reply);
  }

  function enter(
    known: Principal,
    shown: PresentedCredential,
    request: FastifyRequest,
    reply: FastifyReply,
    needs: NeededPermission,
  ): void {
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

  return {
    onRoute(route) {
      const others = [route.onRequest ?? []].flat() as onRequestHookHandler[];
      route.onRequest = [hook(route.config?.access ?? "read"), ...others];
    },
    onNotFound: hook("read"),
    stays(request) {
      if ((request.principal?.id ?? null) === null) return null;
      const shown = shownIn(request);
      return shown && (() => access.knows(shown));
    },
  };
}

/** Few requests need it, so the others do not pay for a promise. */
export async function settle(step: Promise<void>, done: (error?: Error) => void): Promise<void> {
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
    return text === null ? null : { by: "cookie", text };
  }
  if (!/^bearer /i.test(authorization) || isDoubled(raw.rawHeaders)) return null;
  return { by: "bearer", text: authorization.slice(7).trim() };
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

/** A browser sends cookies by itself, so a change must come from a page of ours; that others' `Origin` is not, the guard has seen. */
export function checkOrigin({ method, headers }: FastifyRequest, reply: FastifyReply): void {
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

export function inboundOf({ query, headers, principal }: FastifyRequest): Inbound {
  dropInternal(query as Record<string, unknown>);
  return { ...OUTSIDE, mayForward: headers[NO_FORWARD_HEADER] === undefined, principal };
}

/** Longer than any address; what a proxy passed on unseen may be anything. */
const ADDRESS_LENGTH_MAX = 64;

/** One of IPv4 looks the same whether or not the node listens to IPv6 too. */
export function addressOf({ ip, raw }: FastifyRequest): string {
  const address = outerCallerOf(raw)?.address ?? ip;
  return address.replace(/^::ffff:(?=\d+\.)/i, "").slice(0, ADDRESS_LENGTH_MAX);
}

/**
 * Whether the caller itself uses https. Two proxies may each have added a word, `https, http`: the one of the outermost
 * that is trusted counts. Or the first word was passed on as it was.
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
