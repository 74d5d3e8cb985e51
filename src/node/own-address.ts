import type { NodeInfo } from "../core/node.ts";

type Address = Pick<NodeInfo, "url" | "address" | "httpPort">;

/** How others reach us: as it was set, or the address that we listen on; of all addresses, the host's name. */
export function addressOf(
  http: { readonly host: string; readonly url: string },
  host: string,
): (listening: string | null) => Address {
  const nowhere: Address = { url: null, address: null, httpPort: null };
  let known: { readonly listening: string | null; readonly address: Address } = {
    listening: null,
    address: nowhere,
  };
  return (listening) => {
    if (listening === known.listening) return known.address;
    if (listening === null) return nowhere;
    const url = new URL(listening);
    if (http.host === "0.0.0.0" || http.host === "::") url.hostname = host;
    const address = url.hostname.replace(/^\[|\]$/g, "");
    known = { listening, address: { url: http.url || url.origin, address, httpPort: Number(url.port) } };
    return known.address;
  };
}
