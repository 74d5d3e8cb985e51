/**
 * For the API in a server of the program around this node: that program has authenticated the caller, and here only the
 * permission is checked. Credentials of Baton count for nothing, and nothing is public.
 */

import type { FastifyReply, FastifyRequest, onRequestHookHandler } from "fastify";
import type { AuditTrail } from "../access/audit-trail.ts";
import { principalText, requirePermission, type NeededPermission } from "../core/access/permissions.ts";
import { BatonError } from "../core/errors.ts";
import { addressOf, checkOrigin, settle, type Authentication } from "./authenticate.ts";
import { outerCallerOf } from "./outer-callers.ts";
import type { RateLimits } from "./rate-limits.ts";

export function mountedAuthentication(
  limits: Pick<RateLimits, "request">,
  audit: Pick<AuditTrail, "refused">,
): Authentication {
  function enter(request: FastifyRequest, reply: FastifyReply, needs: NeededPermission): void {
    const { principal, refusal } = outerCallerOf(request.raw)!;
    const { authorization, cookie } = request.headers;
    if (principal === null) {
      audit.refused(addressOf(request), "UNAUTHENTICATED");
      throw refusal ?? signInElsewhere();
    }
    if (request.routeOptions.config.operation?.login) throw signInElsewhere();
    // How the program knows the caller is its own affair; a cookie may be how.
    if (cookie !== undefined && authorization === undefined) checkOrigin(request, reply);
    try {
      requirePermission(principal, needs === "public" ? "read" : needs);
    } catch (error) {
      audit.refused(addressOf(request), "FORBIDDEN", principalText(principal));
      throw error;
    }
    request.principal = principal;
  }

  function hook(needs: NeededPermission): onRequestHookHandler {
    return (request, reply, done) => {
      try {
        enter(request, reply, needs);
      } catch (error) {
        return done(error as Error);
      }
      if (!limits.request) done();
      else void settle(limits.request(request, reply), done);
    };
  }

  return {
    onRoute(route) {
      const others = [route.onRequest ?? []].flat() as onRequestHookHandler[];
      route.onRequest = [hook(route.config?.access ?? "read"), ...others];
    },
    onNotFound: hook("read"),
    stays: (request) => outerCallerOf(request.raw)!.stays,
  };
}

function signInElsewhere(): BatonError {
  return new BatonError(
    "UNAUTHENTICATED",
    "the application that this API is mounted in knows its callers itself: sign in there, and load this page again",
  );
}
