/** Checks and outcomes that all transports share. */

import type { CallOptions, Failure, PeerRequest, StreamOptions } from "./transport.ts";

export function refused(reason: string): Failure {
  return { outcome: "refused", reason };
}

export function unknown(reason: string): Failure {
  return { outcome: "unknown", reason };
}

export function late(options: CallOptions | StreamOptions): Failure {
  return { ...unknown(tooLate(options)), late: true };
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

/**
 * The origin of a peer, with the path at which a proxy offers it. An url may come from a peer's own announcement, so a
 * bad one is a refusal like that of an unreachable peer, not an exception.
 */
export function peerAddress(peerUrl: string): string | Failure {
  if (!URL.canParse(peerUrl)) return refused(`the peer's url is not a url: ${JSON.stringify(peerUrl)}`);
  const url = new URL(peerUrl);
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    return refused(`the peer's url must begin with http:// or https://, not ${url.protocol}`);
  }
  if (url.username || url.password) return refused("the peer's url must not carry a user or a password");
  return url.origin + url.pathname.replace(/\/$/, "");
}

/** The refusal of what cannot be sent to any peer. */
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

/** What the handler hears of the deadline: that of the request itself where it was passed on. A stream has none. */
export function deadlineOf(request: PeerRequest, options: CallOptions | StreamOptions): number | null {
  const given = Number(request.headers?.[DEADLINE_HEADER]);
  if (Number.isSafeInteger(given) && given > 0) return given;
  const limit = limitMs(options);
  return "headMs" in options || !Number.isFinite(limit) ? null : Math.ceil(limit);
}

/** Whether nothing listens there. Of several addresses every one has to refuse: the process may listen on any of them. */
export function isRefusal(error: Error): boolean {
  const each = error instanceof AggregateError ? error.errors : [error];
  return each.every((one) => (one as NodeJS.ErrnoException).code === "ECONNREFUSED");
}

export const DEADLINE_HEADER = "x-baton-deadline-ms";
