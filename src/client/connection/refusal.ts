/** Converts the answers of a node into values and errors. */

import type { Answer } from "./connection.ts";
import { BatonClientError } from "../client-error.ts";

export function parsed(answer: Answer): unknown {
  try {
    return JSON.parse(answer.body);
  } catch (error) {
    throw new BatonClientError("BAD_REPLY", "what answered is not a Baton node: its reply is not JSON", {
      status: answer.status,
      body: answer.body.slice(0, 1_000),
      cause: error,
    });
  }
}

interface RefusalBody {
  readonly error?: unknown;
  readonly message?: unknown;
  readonly outcome?: unknown;
  readonly leader_url?: unknown;
}

/** `maybeDone`: what is known from elsewhere; the answer itself may say so as well. */
export function refusalOf(answer: Answer, maybeDone = false): BatonClientError {
  const { status } = answer;
  let body: RefusalBody | null;
  try {
    body = parsed(answer) as RefusalBody | null;
  } catch (error) {
    return error as BatonClientError;
  }
  const details = { status, body, maybeDone: maybeDone || body?.outcome === "unknown" };
  if (body?.error === "NOT_LEADER" && body.message === undefined) {
    // The one refusal without a message: its fields are fixed.
    const leader = typeof body.leader_url === "string" ? body.leader_url : "it is not known which one does";
    return new BatonClientError("NOT_LEADER", `this node does not lead (${leader})`, details);
  }
  if (typeof body?.error !== "string" || typeof body.message !== "string") {
    return new BatonClientError("BAD_REPLY", `what answered (${status}) is not a Baton node`, details);
  }
  return new BatonClientError(body.error, body.message, details);
}
