/** Refuses requests of foreign web pages: from other sites (Origin), and under host names pointed at this machine (Host). */

import { hostname } from "node:os";
import { isLoopback } from "../core/access/permissions.ts";
import { BatonError } from "../core/errors.ts";

interface Headers {
  readonly host?: string;
  readonly origin?: string;
  readonly "sec-fetch-site"?: string | string[];
}

export class OriginGuard {
  /** Null: any. Only on loopback is it known how a node is called; elsewhere names are the operator's business. */
  readonly #hosts: ReadonlySet<string> | null;
  readonly #known = new Set<string>();

  constructor(host: string, name: string) {
    this.#hosts = isLoopback(host)
      ? new Set(
          ["localhost", "127.0.0.1", "[::1]", bracketed(host), name, hostname()].map((each) =>
            each.toLowerCase(),
          ),
        )
      : null;
  }

  /** The refusal, or null. `safe` is true for methods that change nothing. */
  check(headers: Headers, safe: boolean): BatonError | null {
    const { host, origin } = headers;
    if (this.#hosts !== null && (host === undefined || !this.#known.has(host))) {
      if (!this.#accepts(host)) {
        return new BatonError(
          "FORBIDDEN",
          "this node listens on loopback and answers only to localhost, 127.0.0.1, [::1] and its own name; change the Host header",
          { field: "host" },
        );
      }
    }
    if (safe) return null;
    const site = headers["sec-fetch-site"];
    const isOthers = site === "cross-site" || site === "same-site";
    if (isOthers || (origin !== undefined && !sameHost(origin, host))) {
      return new BatonError("FORBIDDEN", "a page of another origin may not change anything here", {
        field: "origin",
      });
    }
    return null;
  }

  #accepts(host: string | undefined): boolean {
    if (host === undefined || !this.#hosts!.has(host.replace(/:\d{1,5}$/, "").toLowerCase())) return false;
    // A handful of spellings; the bound only keeps a caller from filling the set with port numbers.
    if (this.#known.size < 16) this.#known.add(host);
    return true;
  }
}

export function bracketed(host: string): string {
  return host.includes(":") && !host.startsWith("[") ? `[${host}]` : host;
}

function sameHost(origin: string, host: string | undefined): boolean {
  return URL.canParse(origin) && new URL(origin).host === host?.toLowerCase();
}
