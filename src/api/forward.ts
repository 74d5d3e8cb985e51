/**
 * Forwards a request to the node that it belongs to, or new work to the node that takes it. The answer is returned
 * unchanged, also a refusal. A missing or truncated one becomes 503 with the owner's name, or 504; a part of an answer is
 * never returned as if it were complete.
 */

import { BatonError } from "../core/errors.ts";
import type { NodeInfo } from "../core/node.ts";
import type { Target } from "../core/route.ts";
import { traceHeaders } from "../core/trace.ts";
import { ACTIVE, failureOf, type Span, type Tracing } from "../platform/tracing.ts";
import {
  headersBack,
  headersOn,
  hopHeaders,
  hopPath,
  patienceMs,
  traceIn,
  VIA_HEADER,
  type Peers,
} from "../transport/hop-headers.ts";
import type { Failure, PeerRequest, ReplyHead } from "../transport/transport.ts";
import type { OperationInput } from "./execute.ts";
import type { NodeServices } from "./node-services.ts";
import type { Operation } from "./operation.ts";
import { ownerUnreachable } from "./route.ts";

interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
}

export type WrittenReply =
  | (Reply & { readonly body: string })
  /** Of another node only: read as it comes, and cut with `stop`. */
  | (Reply & {
      readonly stream: AsyncIterable<Buffer>;
      readonly stop: AbortController;
      readonly idleMs: number;
    });

interface Hop {
  readonly to: NodeInfo;
  readonly target: Target;
  readonly mutates: boolean;
  readonly url: string;
  readonly request: PeerRequest;
  readonly deadlineMs: number;
}

/** A suspected node is tried all the same, but a caller should not wait long for it. */
const SUSPECT_MS = 1_000;

export function forwarder(services: NodeServices, peers: Peers, tracing: Tracing) {
  const { clock, identity } = services;

  async function traced(
    operation: Operation,
    { request, headers }: OperationInput,
    pass: (span: Span | null) => Promise<WrittenReply | null>,
  ): Promise<WrittenReply | null> {
    if (!tracing.on) return pass(null);
    const span = tracing.start("baton.proxy", {
      kind: "client",
      parent: tracing.active() === null ? traceIn(headers) : ACTIVE,
      attributes: { "http.request.method": request.method, "http.route": operation.path },
    });
    try {
      const reply = await pass(span);
      if (reply === null) return null;
      span.set({ "http.response.status_code": reply.status });
      span.end();
      return reply;
    } catch (error) {
      span.end(failureOf(error));
      throw error;
    }
  }

  /** With the whole answer in memory: the cheaper way for small ones. */
  async function call(hop: Hop): Promise<WrittenReply> {
    const { url, request, deadlineMs, to } = hop;
    const outcome = await peers.call(url, request, { deadlineMs, to: to.name });
    const { status, headers, body } = accepted(outcome, hop);
    return { status, headers: back(headers), body };
  }

  /** The deadline is for the head; what follows is read as it comes. */
  async function stream(hop: Hop, { caller, headers: asked }: OperationInput): Promise<WrittenReply> {
    const { url, request, deadlineMs, to } = hop;
    const stop = new AbortController();
    const callOff = caller?.onGone(() => stop.abort());
    try {
      const { signal } = stop;
      const outcome = await peers.stream(url, request, { headMs: deadlineMs, to: to.name, signal });
      const { status, headers: given, body } = accepted(outcome, hop);
      const length = given["content-length"];
      const headers = { ...back(given), ...(length !== undefined && { "content-length": length }) };
      return { status, headers, stream: body, stop, idleMs: patienceMs(asked, peers.requestTimeoutMs) };
    } catch (error) {
      // Also when the reply was refused here: the rest of it is not waited for.
      stop.abort();
      throw error;
    } finally {
      callOff?.();
    }
  }

  function hopTo(
    to: NodeInfo,
    target: Target,
    { mutates }: Operation,
    input: OperationInput,
    span: Span | null,
  ): Hop {
    const { method, url: path, bodyText: body } = input.request;
    if (to.url === null) throw unreachable({ to, target }, "it has not told its address yet");
    if (to.status === "dead") throw unreachable({ to, target }, "it is dead");
    const patience = patienceMs(input.headers, peers.requestTimeoutMs);
    const deadlineMs = to.alive ? patience : Math.min(patience, SUSPECT_MS);
    const request: PeerRequest = {
      method: (method === "HEAD" ? "GET" : method) as PeerRequest["method"],
      path: hopPath(path, { sentAt: Math.floor(clock.now()) }),
      headers: hopHeaders(headersFor(input, span), deadlineMs, peers),
      ...(body !== "" && { body }),
    };
    return { to, target, mutates, url: to.url, request, deadlineMs };
  }

  function back(headers: ReplyHead["headers"]): Record<string, string> {
    return { ...headersBack(headers), [VIA_HEADER]: identity.name };
  }

  return {
    async forward(
      operation: Operation,
      to: NodeInfo,
      target: Target,
      input: OperationInput,
    ): Promise<WrittenReply> {
      const asItComes = (operation.streams || operation.large) && input.request.method !== "HEAD";
      const reply = await traced(operation, input, (span) => {
        span?.set({ "baton.target": to.name });
        const hop = hopTo(to, target, operation, input, span);
        return asItComes ? stream(hop, input) : call(hop);
      });
      return reply!;
    },

    /** New work, to the node that takes it; null when it stays here, and then its span is dropped. */
    async place(operation: Operation, input: OperationInput): Promise<WrittenReply | null> {
      const { placement } = services;
      if (!placement || !operation.places) return null;
      const { waitsMs = 0, ...wanted } = operation.places(services, input);
      return traced(operation, input, async (span) => {
        const placed = await placement.place({
          ...wanted,
          path: input.request.url,
          body: input.request.bodyText,
          headers: headersFor(input, span),
          deadlineMs: waitsMs + patienceMs(input.headers, peers.requestTimeoutMs),
        });
        if (placed.at === "here") return null;
        const { node, reply } = placed;
        span?.set({ "baton.target": node.name });
        return { status: reply.status, headers: back(reply.headers), body: reply.body };
      });
    },
  };
}

function headersFor(
  { headers, request, principal }: OperationInput,
  span: Span | null,
): Record<string, string> {
  const passed = headersOn(headers, request.id, principal);
  return span ? Object.assign(passed, traceHeaders(span.trace)) : passed;
}

function unreachable(
  { to, target }: Pick<Hop, "to" | "target">,
  why: string,
  details: Readonly<Record<string, unknown>> = {},
): BatonError {
  if (target.at !== "leader") return ownerUnreachable(to.name, why, details);
  return new BatonError("NO_LEADER", `the leader (${to.name}) cannot be reached from here: ${why}`, {
    leader_id: to.name,
    leader_url: to.url,
    ...details,
  });
}

/** Throws when there is no reply, or a redirect: that names an address which only the other node knows. */
function accepted<Reply extends { readonly outcome: "reply" } & ReplyHead>(
  outcome: Reply | Failure,
  hop: Hop,
): Reply {
  if (outcome.outcome !== "reply") throw failed(outcome, hop);
  if (outcome.status < 300 || outcome.status >= 400 || outcome.status === 304) return outcome;
  const { name } = hop.to;
  throw new BatonError("BAD_PEER_REPLY", `${name} answered with a redirect, which is not followed`, {
    owner: name,
  });
}

function failed(failure: Failure, hop: Hop): BatonError {
  const { to, mutates, deadlineMs } = hop;
  const maybeDone = failure.outcome === "unknown" && mutates;
  const details = maybeDone ? { outcome: "unknown" } : {};
  if (failure.outcome !== "unknown" || !failure.late || !to.alive)
    return unreachable(hop, failure.reason, details);
  const words = maybeDone ? "; it may have carried the request out" : "";
  const message = `${to.name} did not answer within ${Math.round(deadlineMs)} ms${words}`;
  return new BatonError("DEADLINE", message, { owner: to.name, ...details });
}
