/** The setting `nodes`: the names of the nodes, each with its URL. */

import { NODE_NAME } from "../../core/ids.ts";
import type { Address } from "./address.ts";
import { Mistake } from "../mistake.ts";
import { lookup, resolveSrv } from "node:dns/promises";
import { isIPv6 } from "node:net";

export type NodeMap = Readonly<Record<string, string>>;

const EXAMPLE = "a=http://10.0.0.1:8420,b=http://10.0.0.2:8420";

/** From a variable or a flag: JSON, or names and URLs with commas between. */
export function nodesFromText(text: string): unknown {
  const trimmed = text.trim();
  if (trimmed.startsWith("{")) {
    try {
      return JSON.parse(trimmed);
    } catch {
      throw new Mistake(`is not valid JSON; write it in full, or as ${EXAMPLE}`);
    }
  }
  const nodes = new Map<string, string>();
  for (const part of trimmed.split(",").map((each) => each.trim())) {
    if (part === "") continue;
    const cut = part.indexOf("=");
    if (cut < 1) throw new Mistake(`must be written as ${EXAMPLE}, not ${JSON.stringify(part)}`);
    const name = part.slice(0, cut).trim();
    if (nodes.has(name)) throw new Mistake(`has ${name} twice`);
    nodes.set(name, part.slice(cut + 1).trim());
  }
  return Object.fromEntries(nodes);
}

export function readNodes(found: unknown): NodeMap {
  if (found === null || typeof found !== "object" || Array.isArray(found)) {
    throw new Mistake("must be a map of names and URLs, such as `node-1: http://10.0.0.1:8420`");
  }
  const nodes = Object.entries(found).map(([name, url]): [string, string] => {
    if (!NODE_NAME.test(name)) {
      throw new Mistake(
        `has a name that is none: ${JSON.stringify(name)} must consist of letters, digits and ._- and begin and end with a letter or digit`,
      );
    }
    return [name, readUrl(name, url)];
  });
  const byUrl = Map.groupBy(nodes, ([, url]) => url.toLowerCase());
  for (const [url, same] of byUrl) {
    if (same.length > 1) {
      const names = same.map(([name]) => name).join(" and ");
      throw new Mistake(`has ${url} for ${names}; every node has a URL of its own`);
    }
  }
  return Object.fromEntries(nodes);
}

/** Null where the port in the URL belongs to something in front of the node, which ends TLS for it. */
export function listenerOf(url: string): Address | null {
  const { protocol, hostname, port } = new URL(url);
  return protocol === "http:" ? { host: hostname, port: Number(port || 80) } : null;
}

function readUrl(name: string, url: unknown): string {
  const wanted = "a URL such as http://10.0.0.1:8420, without a path";
  if (typeof url !== "string") throw new Mistake(`must have ${wanted}, for ${name}`);
  const parsed = URL.parse(url);
  const plain = /^https?:\/\/[^\s/?#@]+\/?$/i.test(url);
  if (parsed === null || !plain || parsed.port === "0") {
    // What stands before an @ may be a password.
    const shown = url.includes("@") ? "" : `, not ${JSON.stringify(url)}`;
    throw new Mistake(`must have ${wanted}, for ${name}${shown}`);
  }
  return url.replace(/\/$/, "");
}

export interface Discovery {
  readonly records: "addresses" | "srv";
  readonly name: string;
  /** Null where the node's own port is meant, or SRV records tell. */
  readonly port: number | null;
}

export interface Resolver {
  /** As programs look up names: with the hosts file and the search domains, so that short names of Kubernetes work. */
  addresses(name: string): Promise<readonly string[]>;
  srv(name: string): Promise<readonly { readonly name: string; readonly port: number }[]>;
}

export const systemResolver: Resolver = {
  addresses: async (name) => (await lookup(name, { all: true })).map(({ address }) => address),
  srv: (name) => resolveSrv(name),
};

export function parseDiscovery(text: string): Discovery | null {
  const match = /^(srv:)?([A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?\.?)(?::(\d{1,5}))?$/.exec(text);
  if (!match) return null;
  const port = match[3] === undefined ? null : Number(match[3]);
  const records = match[1] === undefined ? "addresses" : "srv";
  // SRV records have ports of their own.
  if (port !== null && (port < 1 || port > 65_535 || records === "srv")) return null;
  return { records, name: match[2]!, port };
}

/** Sorted and each once, so that two answers in different order are the same. Rejects as DNS does. */
export async function discoverNodes(
  { records, name, port }: Discovery,
  ownPort: number,
  resolver: Resolver = systemResolver,
): Promise<string[]> {
  const found =
    records === "srv"
      ? await resolver.srv(name)
      : (await resolver.addresses(name)).map((address) => ({ name: address, port: port ?? ownPort }));
  const urls = found.map((each) => {
    const host = isIPv6(each.name) ? `[${each.name}]` : each.name.replace(/\.$/, "");
    return `http://${host}:${each.port}`;
  });
  return [...new Set(urls)].sort();
}
