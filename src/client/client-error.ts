/** The error of a call to a node, and how answers of a node become values or errors. */

import { BatonError, type ErrorCode, type ErrorDetails } from "../core/errors.ts";
import type { Answer } from "./connection/connection.ts";

interface CallDetails extends ErrorOptions {
  readonly status?: number;
  readonly body?: unknown;
  readonly maybeDone?: boolean;
  readonly systemCode?: string;
}

/**
 * `UNREACHABLE`: no connection, or it broke. `TIMEOUT`: the node was reached, or might have been, and did not answer
 * in time. `OUTCOME_UNKNOWN`: the answer to a change was lost, and it is not safe to make the change again. `ABORTED`: the caller
 * called it off. `CLOSED`: the client was closed. `BAD_REPLY`: something answered that is not a Baton node. `BAD_URL`: the
 * address is none. All others are refusals of a node.
 */
export class CallError extends BatonError {
  override readonly status: number | null;
  /** The whole answer: a refusal may say more than its message. */
  readonly body: unknown;
  /** Whether the request may have been carried out although no answer came. Repeat it only if that does no harm. */
  readonly maybeDone: boolean;
  /** Why there is no connection, as the operating system or the HTTP client says it: `ECONNREFUSED`; null otherwise. */
  readonly systemCode: string | null;

  /** A node of a newer version may have codes that are not known here. */
  constructor(code: ErrorCode | (string & {}), message: string, details: CallDetails = {}) {
    const { status = null, body = null, maybeDone = false, systemCode = null } = details;
    const said = { ...saidBy(body), ...(maybeDone && { outcome: "unknown" }) };
    super(code as ErrorCode, message, said, details);
    this.status = status;
    this.body = body;
    this.maybeDone = maybeDone;
    this.systemCode = systemCode;
  }
}

function saidBy(body: unknown): ErrorDetails {
  if (typeof body !== "object" || body === null) return {};
  const { error: _, message: __, ...details } = body as Record<string, unknown>;
  return details;
}

/** The body of an answer; null without one. Throws BAD_REPLY for a success that is not JSON. */
export function jsonOf({ status, body }: Answer): unknown {
  if (body === "") return null;
  try {
    return JSON.parse(body) as unknown;
  } catch (error) {
    if (status >= 400) return null; // of something between us and the node
    throw new CallError("BAD_REPLY", "what answered is not a Baton node: its reply is not JSON", {
      status,
      body: body.slice(0, 1_000),
      cause: error,
    });
  }
}

export type Refusal = Partial<Record<"error" | "message" | "outcome" | "leader_url" | "gateways", unknown>>;

/** `maybeDone`: what is known from elsewhere; the answer itself may say so as well. */
export function refusalOf(answer: Answer, maybeDone = false): CallError {
  const { status } = answer;
  const body = jsonOf(answer) as Refusal | null;
  const details = {
    status,
    body: body ?? answer.body.slice(0, 1_000),
    maybeDone: maybeDone || body?.outcome === "unknown",
  };
  if (body?.error === "NOT_LEADER" && body.message === undefined) {
    // The one refusal without a message: its fields are fixed.
    const leader = typeof body.leader_url === "string" ? body.leader_url : "it is not known which one does";
    return new CallError("NOT_LEADER", `this node does not lead (${leader})`, details);
  }
  if (typeof body?.error !== "string" || typeof body.message !== "string") {
    return new CallError("BAD_REPLY", `what answered (${status}) is not a Baton node`, details);
  }
  return new CallError(body.error, body.message, details);
}

/** Null where there is none: a refusal, or no node that answers. */
export async function answerOf<Answer>(call: Promise<Answer>): Promise<Answer | null> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof CallError) return null;
    throw error;
  }
}
