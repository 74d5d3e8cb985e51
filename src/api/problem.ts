/**
 * Errors as callers see them: flat, `{"error": CODE, "message": …, "field"?: …}`.
 *
 * The message is shown only for errors that Baton threw on purpose (BatonError) and for errors of the HTTP layer about
 * the request itself. Any other error is INTERNAL with the id of the request, under which the log has the details.
 */

import { z } from "zod";
import { NotLeader } from "../controller/term-guard.ts";
import { BatonError, ERRORS, type ErrorCode } from "../core/errors.ts";

export const ProblemBody = z.looseObject({
  error: z.string().describe("a stable code"),
  message: z.string(),
  field: z.string().optional(),
  issues: z
    .array(z.object({ field: z.string(), message: z.string() }))
    .optional()
    .describe("all mistakes, where there are several"),
});
export type ProblemBody = z.output<typeof ProblemBody>;

export interface Problem {
  readonly status: number;
  /** A `ProblemBody`, but for those whose fields are a contract of their own. */
  readonly body: Readonly<Record<string, unknown>> & { readonly error: string };
  readonly retryAfter: boolean;
  /** Not a refusal but a fault of ours: belongs into the log. */
  readonly fault: boolean;
}

/** Codes that end a start or a call of the library. Should one ever surface in a request, it is a fault of ours. */
const INTERNAL_CODES: ReadonlySet<ErrorCode> = new Set([
  "INTERNAL",
  "BAD_CONFIG",
  "BAD_TASK",
  "DATA_IN_USE",
  "DATA_UNUSABLE",
  "JOB_FAILED",
  "BAD_OPTIONS",
  "BAD_URL",
  "BAD_REPLY",
  "UNREACHABLE",
  "TIMEOUT",
  "OUTCOME_UNKNOWN",
  "ABORTED",
  "CLOSED",
]);

/** Under the name that callers of a cluster without shared store have always tested for. */
const PUBLIC_NAMES: Partial<Record<ErrorCode, string>> = { OWNER_UNREACHABLE: "owner_node_unreachable" };

export function problemOf(error: unknown, requestId: string): Problem {
  const known = error instanceof BatonError ? error : fromHttpLayer(error);
  if (known && Object.hasOwn(ERRORS, known.code) && !INTERNAL_CODES.has(known.code)) return refusalOf(known);
  return {
    status: 500,
    body: {
      error: "INTERNAL",
      message: `something went wrong here; the log of this node has the details under request ${requestId}`,
      request_id: requestId,
    },
    retryAfter: true,
    fault: true,
  };
}

function refusalOf(error: BatonError): Problem {
  const { status, retryable } = ERRORS[error.code];
  const core = { error: PUBLIC_NAMES[error.code] ?? error.code, message: error.message };
  return {
    status,
    // Code and message come first to be read first, and last so that no detail can pose as them.
    body:
      error instanceof NotLeader
        ? { error: error.code, ...error.details }
        : { ...core, ...error.details, ...core },
    retryAfter: retryable && (status >= 500 || status === 429),
    fault: false,
  };
}

const BAD_URL = ["BAD_REQUEST", "the path is not a valid URL; percent-encode special characters"] as const;

const HTTP_LAYER: Readonly<Record<string, readonly [ErrorCode, string]>> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: [
    "UNSUPPORTED_MEDIA_TYPE",
    "the body must be JSON; send content-type: application/json",
  ],
  FST_ERR_CTP_BODY_TOO_LARGE: [
    "BODY_TOO_LARGE",
    "the body is larger than this node accepts; send less at once",
  ],
  FST_ERR_BAD_URL: BAD_URL,
  FST_ERR_MAX_PARAM_LENGTH: BAD_URL,
};

function fromHttpLayer(error: unknown): BatonError | null {
  if (!(error instanceof Error)) return null;
  const { code = "", statusCode = 0 } = error as Error & { code?: string; statusCode?: number };
  const known = HTTP_LAYER[code];
  if (known) return new BatonError(...known);
  const isRefusal = code.startsWith("FST_") && statusCode >= 400 && statusCode < 500;
  return isRefusal ? new BatonError("BAD_REQUEST", error.message) : null;
}
