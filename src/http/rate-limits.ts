/**
 * Limits the rate of attempts per caller. Each node counts by itself and allows its share of the logins of the cluster.
 * Nodes exchange no counts: these would be too late for attempts made at all nodes at the same moment.
 */

import type { CreateRateLimitOptions } from "@fastify/rate-limit";
import Fastify from "fastify";
import type { FastifyInstance, FastifyReply, FastifyRequest, FastifyServerOptions } from "fastify";
import { principalText } from "../core/access/permissions.ts";
import { BatonError } from "../core/errors.ts";

/** Requests and replies are checked and written by api/schema/operation-schema.ts; Fastify need not load its compilers. */
export const NO_COMPILERS: Pick<FastifyServerOptions, "schemaController"> = {
  schemaController: {
    compilersFactory: {
      buildValidator: (() => () => () => true) as never,
      buildSerializer: (() => () => JSON.stringify) as never,
    },
  },
};

type Limit = ReturnType<FastifyInstance["createRateLimit"]>;

const MINUTE_MS = 60_000;
/** Of all nodes. Larger, and a password that people chose is found sooner; smaller, and an office behind one address locks itself out. */
const LOGINS_OF_ADDRESS = 20;
const LOGINS_OF_USER = 10;
/** The smallest share. Smaller, and in a large cluster whoever mistypes once has to wait. */
const LOGINS_MIN = 3;
const FAILURES_OF_ADDRESS = 60;

export type RateLimits = ReturnType<typeof rateLimits>;

/** `perSecond`: of each caller; 0 for as many as they like. `nodes`: how many can be asked, with this one. */
export function rateLimits(perSecond: number, nodes: () => number) {
  let app: Promise<FastifyInstance> | null = null;
  const limitOf = (options: CreateRateLimitOptions): Limit => {
    let limit: Limit | null = null;
    return async (request) => {
      app ??= loadPlugin();
      limit ??= (await app).createRateLimit(options);
      return limit(request);
    };
  };
  const minute = (max: number | (() => number)): CreateRateLimitOptions => ({ max, timeWindow: MINUTE_MS });
  const share = (all: number) => (): number => loginsOfNode(all, nodes());
  const loginsOfAddress = limitOf(minute(share(LOGINS_OF_ADDRESS)));
  const loginsOfUser = limitOf({ ...minute(share(LOGINS_OF_USER)), keyGenerator: userOf });
  const failures = limitOf(minute(FAILURES_OF_ADDRESS));
  const requests = limitOf({ max: perSecond, timeWindow: 1_000, keyGenerator: callerOf });
  return {
    async login(request: FastifyRequest, reply: FastifyReply): Promise<void> {
      const words = "too many logins; wait, and try again";
      await hold(loginsOfAddress, request, reply, words);
      await hold(loginsOfUser, request, reply, words);
    },

    /** After a wrong credential. A right one is never counted, so that one who errs does not lock out others behind his proxy. */
    failed: (request: FastifyRequest, reply: FastifyReply): Promise<void> =>
      hold(failures, request, reply, "too many wrong credentials from this address; wait"),

    /** Null without a limit, so that requests do not pay for a promise. */
    request:
      perSecond === 0
        ? null
        : (request: FastifyRequest, reply: FastifyReply): Promise<void> =>
            hold(requests, request, reply, "too many requests (http.rate_limit)"),
  };
}

/** In an instance of its own, by the first request that is counted: most nodes count none. */
async function loadPlugin(): Promise<FastifyInstance> {
  const app = Fastify(NO_COMPILERS);
  const { default: rateLimit } = await import("@fastify/rate-limit");
  await app.register(rateLimit, { global: false });
  return app;
}

export function loginsOfNode(all: number, nodes: number): number {
  return Math.max(LOGINS_MIN, Math.ceil(all / Math.max(1, nodes)));
}

async function hold(
  limit: Limit,
  request: FastifyRequest,
  reply: FastifyReply,
  message: string,
): Promise<void> {
  const found = await limit(request);
  if (found.isAllowed || !found.isExceeded) return;
  const seconds = Math.max(1, found.ttlInSeconds);
  reply.header("retry-after", String(seconds));
  throw new BatonError("TOO_MANY_REQUESTS", message, { retry_after_seconds: seconds });
}

function userOf(request: FastifyRequest): string {
  return String((request.body as { user?: unknown } | null)?.user);
}

function callerOf({ principal, ip }: FastifyRequest): string {
  return principal === null || principal.kind === "loopback" ? ip : principalText(principal);
}
