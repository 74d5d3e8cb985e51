import type { ErrorCode } from "../core/errors.ts";

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
  /** Of the answer; null when there was none. */
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
