/** What every keeper of the transport port checks, and says, in the same way. */

import type { CallOptions, Outcome, PeerRequest } from "./transport.ts";

export function refused(reason: string): Outcome {
  return { outcome: "refused", reason };
}

export function unknown(reason: string): Outcome {
  return { outcome: "unknown", reason };
}

export interface Address {
  readonly origin: string;
  /** The request's path behind that of the peer's url, if it has one. */
  readonly path: string;
}

/**
 * Where the call goes, or the refusal: an address may come from a peer's own announcement, so a bad one is an outcome
 * like an unreachable peer, not an exception.
 */
export function addressOf(peerUrl: string, request: PeerRequest, options: CallOptions): Address | Outcome {
  if (!URL.canParse(peerUrl)) return refused(`the peer's url is not a url: ${JSON.stringify(peerUrl)}`);
  const url = new URL(peerUrl);
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    return refused(`the peer's url must begin with http:// or https://, not ${url.protocol}`);
  }
  if (url.username || url.password) return refused("the peer's url must not carry a user or a password");
  if (!request.path.startsWith("/")) {
    return refused(`the path of a request must begin with /: ${JSON.stringify(request.path)}`);
  }
  if (!(options.deadlineMs > 0)) return refused(`deadlineMs must be above 0, not ${options.deadlineMs}`);
  if (options.signal?.aborted) return refused("it was called off before it was sent");
  return { origin: url.origin, path: url.pathname.replace(/\/$/, "") + request.path };
}
