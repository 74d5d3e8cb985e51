/** Refuses requests of foreign web pages: from other sites (Origin), and under host names pointed at this machine (Host). */

import { hostname } from "node:os";
import { isLoopback } from "../core/access/permissions.ts";
import { BatonError } from "../core/errors.ts";

interface Headers {
  readonly host?: string;
  readonly origin?: string;
  readonly "sec-fetch-site"?: string | string[];
}

/**
 * The refusal, or null. `safe` is true for methods that change nothing. `host`: what the browser called, where a server
 * around this node knows it better than the Host header, because it trusts its proxy.
 */
export type OriginGuard = (headers: Headers, safe: boolean, host?: string) => BatonError | null;

/** Only on loopback is it known how a node is called; elsewhere names are the operator's business. */
export function originGuard(listensOn: string, name: string): OriginGuard {
  const names = ["localhost", "127.0.0.1", "[::1]", bracketed(listensOn), name, hostname()];
  const hosts = isLoopback(listensOn) ? new Set(names.map((each) => each.toLowerCase())) : null;
  return (headers, safe, outerHost) => {
    const { host, origin } = headers;
    if (hosts && !hosts.has((host ?? "").replace(/:\d{1,5}$/, "").toLowerCase())) {
      return new BatonError(
        "FORBIDDEN",
        "this node listens on loopback and answers only to localhost, 127.0.0.1, [::1] and its own name; change the Host header",
        { field: "host" },
      );
    }
    if (safe) return null;
    const site = headers["sec-fetch-site"];
    const isOthers = site === "cross-site" || site === "same-site";
    const isOwn = origin === undefined || [host, outerHost].some((each) => sameHost(origin, each));
    if (isOthers || !isOwn) {
      return new BatonError("FORBIDDEN", "a page of another origin may not change anything here", {
        field: "origin",
      });
    }
    return null;
  };
}

export function bracketed(host: string): string {
  return host.includes(":") && !host.startsWith("[") ? `[${host}]` : host;
}

function sameHost(origin: string, host: string | undefined): boolean {
  return URL.canParse(origin) && new URL(origin).host === host?.toLowerCase();
}
