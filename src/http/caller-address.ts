/**
 * The address of a caller, and whether it uses https, also behind proxies. `http.trusted_proxies` says which proxies
 * Fastify trusts.
 */

import type { FastifyRequest } from "fastify";

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
