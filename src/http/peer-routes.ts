/** Requests of nodes over plain HTTP: every path under `/peer/`, after the signature was verified. */

import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { PeerRequestHandler } from "../api/peer-request-handler.ts";
import { BatonError } from "../core/errors.ts";
import type { ReceivedRequest } from "../transport/transport.ts";
import { notBelieved, signed, type Authenticate } from "./authenticate.ts";
import type { EventStreams } from "./event-streams.ts";

export interface PeerRoutesOptions {
  readonly requests: PeerRequestHandler;
  readonly authenticate: Authenticate;
  readonly streams: EventStreams;
}

const METHODS = ["GET", "POST", "PUT", "DELETE"] as const;
/** Between two parts of a streamed answer of our own. */
const IDLE_MS = 60_000;

export async function servePeers(app: FastifyInstance, options: PeerRoutesOptions): Promise<void> {
  // In a scope of its own: bodies of nodes are handed on as the text that was signed.
  await app.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser("*", { parseAs: "string" }, (_request, text, done) => done(null, text));
    scope.route({
      method: [...METHODS],
      url: "/peer/*",
      config: { access: "peer" },
      exposeHeadRoute: false,
      handler: (request, reply) => serve(request, reply, options),
    });
  });
}

async function serve(
  request: FastifyRequest,
  reply: FastifyReply,
  options: PeerRoutesOptions,
): Promise<unknown> {
  const body = typeof request.body === "string" ? request.body : "";
  const envelope = signed(request, body);
  const verdict = await options.authenticate(envelope);
  if (verdict === null) throw notBelieved(reply, "it is not signed");
  if ("refused" in verdict) throw notBelieved(reply, verdict.refused);
  if (!isPeerMethod(request.method))
    throw new BatonError("METHOD_NOT_ALLOWED", "nodes do not call like this");
  const stop = new AbortController();
  reply.raw.once("close", () => stop.abort());
  const answer = await options.requests.handle({
    method: request.method,
    path: envelope.path,
    headers: verdict.headers ?? envelope.headers,
    body,
    from: verdict.from,
    signal: stop.signal,
  });
  const { status, headers = {} } = answer;
  if (answer.stream) {
    options.streams.relay(reply, { status, headers, idleMs: IDLE_MS }, answer.stream, stop);
    return reply;
  }
  reply.code(status).headers(headers);
  return answer.body ?? "";
}

function isPeerMethod(method: string): method is ReceivedRequest["method"] {
  return METHODS.some((known) => known === method);
}
