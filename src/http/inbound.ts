/**
 * Tells calls of nodes from those of callers. Being one of us is a property of a verified signature: `internal=1` alone, or any
 * other word of a query or a header, means nothing and is dropped.
 */

import type { FastifyReply, FastifyRequest } from "fastify";
import { arrival, dropInternal, NO_FORWARD_HEADER, OUTSIDE, PEER_REFUSAL_HEADER } from "../transport/hop.ts";
import type { ArrivalOptions, Inbound } from "../transport/hop.ts";
import { BatonError } from "../core/errors.ts";
import type { Authenticator } from "../transport/authenticator.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** Null for callers from outside. */
    peerInbound: Inbound | null;
  }
}

export interface SignedRequest {
  readonly method: string;
  /** With its query, as it came. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/**
 * Null: there is no signature, so it is a caller from outside. `refused`: there is one, and it is not believed. With `headers`,
 * only those were signed, and whatever else came along may have been added on the way.
 */
export type Verdict =
  | { readonly from: string; readonly headers?: Readonly<Record<string, string>> }
  | { readonly refused: string }
  | null;
export type Authenticate = (request: SignedRequest) => Verdict | Promise<Verdict>;

export function authenticateBy(authenticator: Pick<Authenticator, "check">): Authenticate {
  return (request) => {
    const judged = authenticator.check(request);
    switch (judged.verdict) {
      case "accepted":
        return { from: judged.from.name, headers: judged.headers };
      case "refused":
        return { refused: judged.reason };
      case "outside":
        return null;
    }
  };
}

export function inboundOf({ peerInbound, headers, principal }: FastifyRequest): Inbound {
  if (peerInbound !== null) return peerInbound;
  return { ...OUTSIDE, mayForward: headers[NO_FORWARD_HEADER] === undefined, principal };
}

/** For requests to the table: looks at the signature of those that say they are internal. */
export function readInbound(authenticate: Authenticate | null, options: ArrivalOptions) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const query = request.query as Record<string, unknown>;
    const verdict = authenticate === null ? null : await authenticate(signed(request, request.bodyText));
    if (verdict === null) return dropInternal(query);
    if ("refused" in verdict) throw notBelieved(reply, verdict.refused);
    const { from, headers } = verdict;
    if (headers) dropOthers(request.headers, headers);
    request.peerInbound = arrival(from, query, request.headers, options);
  };
}

function dropOthers(all: Record<string, unknown>, kept: Readonly<Record<string, string>>): void {
  for (const name of Object.keys(all)) if (kept[name] === undefined) delete all[name];
}

export function signed(request: FastifyRequest, body: string): SignedRequest {
  // Node joins repeated headers, apart from set-cookie, which nobody signs.
  return {
    method: request.method,
    path: request.url,
    headers: request.headers as Record<string, string>,
    body,
  };
}

export function notBelieved(reply: FastifyReply, why: string): BatonError {
  reply.header(PEER_REFUSAL_HEADER, why.replaceAll(/[^\x20-\x7e]/g, "?"));
  return new BatonError("UNAUTHENTICATED", `this call of a node is not believed: ${why}`);
}
