/**
 * Requests between nodes by the table in peer-routes.ts, against which both sides check what they receive.
 *
 * An answer is one of four, and `unknown` is not `refused`:
 *
 * - `answer`: the peer has carried it out.
 * - `refused`: it certainly did not reach the peer.
 * - `stale`: the peer knows a newer term, and has done nothing.
 * - `unknown`: it may have been carried out. With `error` the peer, or something in between, has answered so.
 */

import { z } from "zod";
import { BatonError, ERRORS } from "../../core/errors.ts";
import type { NodeName } from "../../core/ids.ts";
import type { NodeIdentity } from "../../core/node.ts";
import type { Log } from "../../platform/log.ts";
import type { CallOptions, Outcome, PeerHandler, PeerReply, Transport } from "../../transport/transport.ts";
import { identity } from "./bully-messages.ts";
import { PEER_ROUTES, type PeerRoute, type ReplyOf, type RequestOf } from "./peer-routes.ts";

export type PeerAnswer<Value> =
  | {
      readonly got: "answer";
      readonly value: Value;
      /** The node that answered; null when it does not say. */
      readonly node: NodeIdentity | null;
    }
  | {
      readonly got: "refused";
      readonly reason: string;
      /** Why the server at this address does not accept this node, or is not the node that is meant. */
      readonly denied?: string;
    }
  | { readonly got: "stale"; readonly reason: string }
  | { readonly got: "unknown"; readonly reason: string; readonly error?: PeerError };

export interface PeerError {
  readonly status: number;
  /** A code of core/errors.ts where the peer has answered; BAD_PEER_REPLY for a reply that is not understood. */
  readonly code: string;
  readonly message: string;
  readonly details: Readonly<Record<string, unknown>>;
}

export interface PeerTarget {
  /** Absent while it is not known: a join. */
  readonly name?: NodeName;
  readonly url: string | null;
}

/** A request to vote is a kilobyte, a thousand members of a long name are a hundred. What carries jobs may be larger. */
export const MESSAGE_BYTES_MAX = 262_144;
const LARGE: ReadonlySet<PeerRoute> = new Set([
  "declare",
  "note",
  "read",
  "place",
  "retract",
  "retractionsFor",
  "credentials",
  "events",
]);

const node = z.object({ node: identity });

export class PeerClient {
  readonly #call: Transport["call"];

  constructor(call: Transport["call"]) {
    this.#call = call;
  }

  /** Never rejects. */
  async ask<Route extends PeerRoute>(
    to: PeerTarget,
    route: Route,
    request: RequestOf<Route>,
    options: Omit<CallOptions, "to">,
  ): Promise<PeerAnswer<ReplyOf<Route>>> {
    const { name = "it", url } = to;
    if (url === null) return { got: "refused", reason: `${name} has no address yet` };
    let outcome: Outcome;
    try {
      outcome = await this.#call(
        url,
        {
          method: "POST",
          path: PEER_ROUTES[route].path,
          headers: { "content-type": "application/json" },
          body: JSON.stringify(request),
        },
        to.name === undefined ? options : { ...options, to: to.name },
      );
    } catch (error) {
      outcome = { outcome: "unknown", reason: (error as Error).message };
    }
    if (outcome.outcome === "reply") return understood(name, route, outcome.status, outcome.body);
    const reason = `${name}: ${outcome.reason}`;
    if (outcome.outcome === "unknown") return { got: "unknown", reason };
    return { got: "refused", reason, denied: outcome.denied };
  }
}

/** Only an answer of our own counts. What a proxy, another version or a full disk says leaves the outcome open. */
function understood<Route extends PeerRoute>(
  name: string,
  route: Route,
  status: number,
  body: string,
): PeerAnswer<ReplyOf<Route>> {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    value = null;
  }
  if (status === 200) {
    const { success, data, error } = PEER_ROUTES[route].reply.safeParse(value);
    const message = error?.issues[0]?.message ?? "it is no JSON";
    if (!success) return failed(name, { status, code: "BAD_PEER_REPLY", message, details: {} });
    return { got: "answer", value: data as ReplyOf<Route>, node: node.safeParse(value).data?.node ?? null };
  }
  const {
    error = `status ${status}`,
    message = error,
    ...details
  } = Object(value) as Record<string, unknown>;
  if (status === ERRORS.STALE_EPOCH.status && error === "STALE_EPOCH")
    return { got: "stale", reason: `${name}: ${String(message)}` };
  return failed(name, { status, code: String(error), message: String(message), details });
}

function failed(name: string, error: PeerError): PeerAnswer<never> {
  const { status, code, message } = error;
  return { got: "unknown", reason: `${name}: status ${status}, ${code}: ${message}`, error };
}

export function mapAnswer<From, To>(answer: PeerAnswer<From>, to: (value: From) => To): PeerAnswer<To> {
  return answer.got === "answer" ? { ...answer, value: to(answer.value) } : answer;
}

/** `from`: the name of the sender where it has proved it. */
export type PeerHandlers = {
  readonly [Route in PeerRoute]: (
    request: RequestOf<Route>,
    from: string,
  ) => Promise<ReplyOf<Route>> | ReplyOf<Route>;
};

/** Answers the requests of peers that are authenticated already. */
export function servePeers(
  { identity: self, log }: { readonly identity: NodeIdentity; readonly log: Log },
  handlers: Partial<PeerHandlers>,
): PeerHandler {
  const routes = new Map(
    (Object.keys(handlers) as PeerRoute[]).map((name) => [PEER_ROUTES[name].path, name]),
  );
  return async ({ method, path, body, from }) => {
    try {
      const [pathname] = path.split("?", 1) as [string];
      const route = routes.get(pathname);
      if (!route)
        throw new BatonError("NOT_FOUND", `there is nothing for nodes at ${pathname.slice(0, 200)}`);
      if (method !== "POST")
        throw new BatonError("METHOD_NOT_ALLOWED", `${pathname} is asked with POST, not ${method}`);
      if (!LARGE.has(route) && body.length > MESSAGE_BYTES_MAX)
        throw new BatonError("BODY_TOO_LARGE", `the body is larger than ${MESSAGE_BYTES_MAX} bytes`);
      const handler = handlers[route] as (request: unknown, from: string) => unknown;
      const answer = await handler(readMessage(PEER_ROUTES[route].request, body), from);
      return json({ node: self, ...(answer as object) }, 200);
    } catch (error) {
      return errorReply(error, log);
    }
  };
}

export function errorReply(error: unknown, log: Log): PeerReply {
  if (error instanceof BatonError) {
    const { code, message, details } = error;
    return json({ error: code, message, ...details }, ERRORS[code].status);
  }
  log.error({ err: error }, "a peer's request failed");
  return json({ error: "INTERNAL", message: "see the log of this node" }, ERRORS.INTERNAL.status);
}

function json(body: object, status: number): PeerReply {
  return { status, headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
}

/** Throws BAD_REQUEST with the field that is wrong. */
export function readMessage<Schema extends z.ZodType>(schema: Schema, text: string): z.output<Schema> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new BatonError("BAD_JSON", `the body is not valid JSON: ${(error as Error).message}`);
  }
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const issue = result.error.issues[0]!;
  const field = ["body", ...issue.path].join(".");
  throw new BatonError("BAD_REQUEST", `${field}: ${issue.message}`, { field });
}
