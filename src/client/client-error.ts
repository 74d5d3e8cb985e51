/** The error of the client, and how answers of a node become values or errors. */

import type { ErrorCode } from "../core/errors.ts";
import type { Answer } from "./connection/connection.ts";

/**
 * `UNREACHABLE`: no connection, or it broke. `TIMEOUT`: the node was reached, or might have been, and did not answer
 * in time. `OUTCOME_UNKNOWN`: the answer to a change was lost, and it is not safe to make the change again. `ABORTED`: the caller
 * called it off. `CLOSED`: the client was closed. `BAD_REPLY`: something answered that is not a Baton node. `BAD_URL`: the
 * address is none.
 */
export type ClientErrorCode =
  | ErrorCode
  | "UNREACHABLE"
  | "TIMEOUT"
  | "OUTCOME_UNKNOWN"
  | "ABORTED"
  | "CLOSED"
  | "BAD_REPLY"
  | "BAD_URL"
  | (string & {});

interface Details extends ErrorOptions {
  readonly status?: number;
  readonly body?: unknown;
  readonly maybeDone?: boolean;
  readonly systemCode?: string;
}

export class BatonClientError extends Error {
  readonly code: ClientErrorCode;
  readonly status: number | null;
  /** The whole answer: a refusal may say more than its message. */
  readonly body: unknown;
  /** Whether the request may have been carried out although no answer came. Repeat it only if that does no harm. */
  readonly maybeDone: boolean;
  /** Why there is no connection, as the operating system or the HTTP client says it: `ECONNREFUSED`; null otherwise. */
  readonly systemCode: string | null;

  constructor(code: ClientErrorCode, message: string, details: Details = {}) {
    super(message, details);
    this.name = "BatonClientError";
    this.code = code;
    this.status = details.status ?? null;
    this.body = details.body ?? null;
    this.maybeDone = details.maybeDone ?? false;
    this.systemCode = details.systemCode ?? null;
  }

  /** `unknown`: it may have been carried out. `none`: it was certainly not. */
  get outcome(): "unknown" | "none" {
    return this.maybeDone ? "unknown" : "none";
  }
}

/** The body of an answer; null without one. Throws BAD_REPLY for a success that is not JSON. */
export function jsonOf({ status, body }: Answer): unknown {
  if (body === "") return null;
  try {
    return JSON.parse(body) as unknown;
  } catch (error) {
    if (status >= 400) return null; // of something between us and the node
    throw new BatonClientError("BAD_REPLY", "what answered is not a Baton node: its reply is not JSON", {
      status,
      body: body.slice(0, 1_000),
      cause: error,
    });
  }
}

export type Refusal = Partial<Record<"error" | "message" | "outcome" | "leader_url" | "gateways", unknown>>;

/** `maybeDone`: what is known from elsewhere; the answer itself may say so as well. */
export function refusalOf(answer: Answer, maybeDone = false): BatonClientError {
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
    return new BatonClientError("NOT_LEADER", `this node does not lead (${leader})`, details);
  }
  if (typeof body?.error !== "string" || typeof body.message !== "string") {
    return new BatonClientError("BAD_REPLY", `what answered (${status}) is not a Baton node`, details);
  }
  return new BatonClientError(body.error, body.message, details);
}

/** Null where there is none: a refusal, or no node that answers. */
export async function answerOf<Answer>(call: Promise<Answer>): Promise<Answer | null> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof BatonClientError) return null;
    throw error;
  }
}
