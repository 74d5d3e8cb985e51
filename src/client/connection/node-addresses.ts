/**
 * The addresses of nodes: parsing those that a caller gives, and selecting the usable ones among those that a cluster
 * reports.
 */

import { isLoopback } from "../../core/access/is-loopback.ts";
import { BatonClientError } from "../client-error.ts";

export const DEFAULT_URL = "http://127.0.0.1:8420";

/** One or several, also as one text with commas between them. Throws BAD_URL for what is no address. */
export function addressesOf(given: string | readonly string[]): string[] {
  const parts = typeof given === "string" ? [given] : given;
  const urls = parts.flatMap((part) => part.split(",")).map((part) => part.trim());
  const bad = urls.find((url) => !isAddress(url));
  if (bad !== undefined || urls.length === 0) {
    throw new BatonClientError(
      "BAD_URL",
      `"${bad ?? ""}" is not the address of a node; write it as ${DEFAULT_URL}, several with commas between them`,
    );
  }
  return unique(urls);
}

/**
 * Those that may be used out of what a cluster told. A loopback address is the cluster's own machine, which is ours only if we were
 * given one as well; and whoever was given nothing but https does not send its token over http.
 */
export function usableOf(listed: readonly string[], seeds: readonly string[]): string[] {
  const near = seeds.some((url) => isLoopback(new URL(url).hostname));
  const secured = seeds.every((url) => url.startsWith("https:"));
  return unique(listed.filter(isAddress)).filter((url) => {
    const { protocol, hostname } = new URL(url);
    return (near || !isLoopback(hostname)) && (!secured || protocol === "https:");
  });
}

export function isAddress(url: string): boolean {
  return URL.canParse(url) && /^https?:$/.test(new URL(url).protocol);
}

/** Two spellings of one address are one node. */
export function normal(url: string): string {
  return url.replace(/\/+$/, "");
}

export function unique(urls: readonly string[]): string[] {
  return [...new Set(urls.map(normal))];
}
