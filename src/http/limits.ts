/**
 * How often somebody may try. Each node counts by itself: of an attacker who goes round all nodes each sees its share.
 */

import rateLimit from "@fastify/rate-limit";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { principalText } from "../core/access.ts";
import { BatonError } from "../core/errors.ts";

export interface LimitsOptions {
  /** Of each caller; 0 for as many as they like. */
  readonly perSecond: number;
}

type Limit = (
  request: FastifyRequest,
) => Promise<
  | { readonly isAllowed: true }
  | { readonly isAllowed: false; readonly isExceeded: boolean; readonly ttlInSeconds: number }
>;

const MINUTE_MS = 60_000;
/** Larger, and a password that people chose is found sooner; smaller, and an office behind one address locks itself out. */
const LOGINS_OF_ADDRESS = 20;
const LOGINS_OF_USER = 10;
/** Wrong tokens of one address that are still told to be wrong. */
const FAILURES_OF_ADDRESS = 60;

export class Limits {
  readonly #loginsOfAddress: Limit;
  readonly #loginsOfUser: Limit;
  readonly #failures: Limit;
  readonly #requests: Limit | null;

  private constructor(app: FastifyInstance, { perSecond }: LimitsOptions) {
    const minute = (max: number): object => ({ max, timeWindow: MINUTE_MS });
    this.#loginsOfAddress = app.createRateLimit(minute(LOGINS_OF_ADDRESS));
    this.#loginsOfUser = app.createRateLimit({ ...minute(LOGINS_OF_USER), keyGenerator: userOf });
    this.#failures = app.createRateLimit(minute(FAILURES_OF_ADDRESS));
    this.#requests =
      perSecond === 0
        ? null
        : app.createRateLimit({ max: perSecond, timeWindow: 1_000, keyGenerator: callerOf });
  }

  static async open(app: FastifyInstance, options: LimitsOptions): Promise<Limits> {
    await app.register(rateLimit, { global: false });
    return new Limits(app, options);
  }

  get limitsRequests(): boolean {
    return this.#requests !== null;
  }

  /** Throws when the address or the user has tried too often, whether rightly or not. */
  async login(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const words = "too many logins; wait, and try again";
    await hold(this.#loginsOfAddress, request, reply, words);
    await hold(this.#loginsOfUser, request, reply, words);
  }

  /** After a wrong credential. A right one is never counted, so that one who errs does not lock out others behind his proxy. */
  failed(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    return hold(this.#failures, request, reply, "too many wrong credentials from this address; wait");
  }

  async request(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    if (this.#requests) await hold(this.#requests, request, reply, "too many requests (http.rate_limit)");
  }
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
