/** The setting `discover`: resolves a DNS name to the URLs of the nodes behind it. */

import { lookup, resolveSrv } from "node:dns/promises";
import { isIPv6 } from "node:net";

export interface Discovery {
  readonly records: "addresses" | "srv";
  readonly name: string;
  /** Null where the node's own port is meant, or SRV records tell. */
  readonly port: number | null;
}

/** What is asked of DNS. */
export interface Resolver {
  /** As programs look up names: with the hosts file and the search domains, so that short names of Kubernetes work. */
  addresses(name: string): Promise<readonly string[]>;
  srv(name: string): Promise<readonly { readonly name: string; readonly port: number }[]>;
}

export const systemResolver: Resolver = {
  addresses: async (name) => (await lookup(name, { all: true })).map(({ address }) => address),
  srv: (name) => resolveSrv(name),
};

/** Null for text that is none. */
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
