/** Checks and outcomes that all transports share. */

import type { CallOptions, Failure, PeerRequest, StreamOptions } from "./transport.ts";

export function refused(reason: string): Failure {
  return { outcome: "refused", reason };
}

export function unknown(reason: string): Failure {
  return { outcome: "unknown", reason };
}

export const CALLED_OFF = "it was called off";

export function tooLate(options: CallOptions | StreamOptions): string {
  return "headMs" in options
    ? `no reply began within ${options.headMs} ms`
    : `no complete reply within ${options.deadlineMs} ms`;
}

export function limitMs(options: CallOptions | StreamOptions): number {
  return "headMs" in options ? options.headMs : options.deadlineMs;
}

/** Where a peer is: the origin, and the path in front of every path of a request, if there is one. */
export interface PeerAddress {
  readonly origin: string;
  readonly base: string;
}

/**
 * The address, or the refusal: an url may come from a peer's own announcement, so a bad one is an outcome like an
 * unreachable peer, not an exception.
 */
export function peerAddress(peerUrl: string): PeerAddress | Failure {
  if (!URL.canParse(peerUrl)) return refused(`the peer's url is not a url: ${JSON.stringify(peerUrl)}`);
  const url = new URL(peerUrl);
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    return refused(`the peer's url must begin with http:// or https://, not ${url.protocol}`);
  }
  if (url.username || url.password) return refused("the peer's url must not carry a user or a password");
  return { origin: url.origin, base: url.pathname.replace(/\/$/, "") };
}

/** The refusal of what cannot be sent, whoever the peer is. */
export function mistakeIn(request: PeerRequest, options: CallOptions | StreamOptions): Failure | null {
  if (!request.path.startsWith("/")) {
    return refused(`the path of a request must begin with /: ${JSON.stringify(request.path)}`);
  }
  const limit = limitMs(options);
  if (!(limit > 0)) {
    return refused(`${"headMs" in options ? "headMs" : "deadlineMs"} must be above 0, not ${limit}`);
  }
  return options.signal?.aborted ? refused("it was called off before it was sent") : null;
}

export interface Address {
  readonly origin: string;
  /** The request's path behind that of the peer's url. */
  readonly path: string;
}

export function addressOf(
  peerUrl: string,
  request: PeerRequest,
  options: CallOptions | StreamOptions,
): Address | Failure {
  const peer = peerAddress(peerUrl);
  if ("outcome" in peer) return peer;
  return mistakeIn(request, options) ?? { origin: peer.origin, path: peer.base + request.path };
}

export function lowerCase(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}
