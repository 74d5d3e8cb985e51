/** For Fastify's `preParsing`: a body that a server around this node has read already is read again. */

import { Readable } from "node:stream";
import type { FastifyReply, FastifyRequest } from "fastify";
import { outerCallerOf } from "./outer-callers.ts";

type Payload = Readable & { receivedEncodedLength?: number };

export function replayedBody(
  request: FastifyRequest,
  _reply: FastifyReply,
  payload: Payload,
  done: (error: Error | null, payload: Payload) => void,
): void {
  const body = outerCallerOf(request.raw)?.body ?? null;
  if (body === null) return done(null, payload);
  const again: Payload = Readable.from([Buffer.from(body)], { objectMode: false });
  // Written anew, a body of the same content may have another length than its sender told.
  const told = Number(request.headers["content-length"]);
  if (Number.isInteger(told)) again.receivedEncodedLength = told;
  done(null, again);
}
