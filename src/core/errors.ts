/**
 * The table of all errors: a stable code, an HTTP status, and whether a retry may help. Callers test the code, never
 * the text.
 */

interface ErrorRow {
  readonly status: number;
  /** True when the same request may succeed later without being changed. */
  readonly retryable: boolean;
}

export const ERRORS = {
  BAD_REQUEST: { status: 400, retryable: false },
  BAD_JSON: { status: 400, retryable: false },
  BAD_ID: { status: 400, retryable: false },
  BAD_PAYLOAD: { status: 400, retryable: false },
  BAD_SCHEDULE: { status: 400, retryable: false },
  UNKNOWN_TASK: { status: 400, retryable: false },
  UNAUTHENTICATED: { status: 401, retryable: false },
  FORBIDDEN: { status: 403, retryable: false },
  NOT_FOUND: { status: 404, retryable: false },
  METHOD_NOT_ALLOWED: { status: 405, retryable: false },
  REQUEST_TIMEOUT: { status: 408, retryable: true },
  NOT_FINISHED: { status: 409, retryable: true },
  NO_RESULT: { status: 409, retryable: false },
  NOT_LEADER: { status: 409, retryable: true },
  STALE_EPOCH: { status: 409, retryable: false },
  JOB_RUNNING: { status: 409, retryable: true },
  JOB_NOT_RETRYABLE: { status: 409, retryable: false },
  JOB_FINISHED: { status: 409, retryable: false },
  SCHEDULE_DECLARED: { status: 409, retryable: false },
  IDEMPOTENCY_CONFLICT: { status: 409, retryable: false },
  NAME_IN_USE: { status: 409, retryable: true },
  BODY_TOO_LARGE: { status: 413, retryable: false },
  UNSUPPORTED_MEDIA_TYPE: { status: 415, retryable: false },
  NOT_A_GATEWAY: { status: 421, retryable: false },
  FUNCTION_FAILED: { status: 422, retryable: false },
  TOO_MANY_REQUESTS: { status: 429, retryable: true },
  HEADERS_TOO_LARGE: { status: 431, retryable: false },
  INTERNAL: { status: 500, retryable: true },
  BAD_PEER_REPLY: { status: 502, retryable: true },
  DRAINING: { status: 503, retryable: true },
  CLUSTER_FORMING: { status: 503, retryable: true },
  STORE_UNAVAILABLE: { status: 503, retryable: true },
  OWNER_UNREACHABLE: { status: 503, retryable: true },
  NODE_UNREACHABLE: { status: 503, retryable: true },
  NO_LEADER: { status: 503, retryable: true },
  DEADLINE: { status: 504, retryable: true },
  LOOP: { status: 508, retryable: false },
  // Not seen over HTTP: they end a start or a call of the library or of a client. The status says what they are like.
  BAD_CONFIG: { status: 500, retryable: false },
  BAD_TASK: { status: 500, retryable: false },
  DATA_IN_USE: { status: 500, retryable: false },
  DATA_UNUSABLE: { status: 500, retryable: false },
  STOPPED: { status: 503, retryable: true },
  JOB_FAILED: { status: 422, retryable: false },
  BAD_URL: { status: 400, retryable: false },
  BAD_REPLY: { status: 502, retryable: false },
  UNREACHABLE: { status: 503, retryable: true },
  TIMEOUT: { status: 504, retryable: true },
  OUTCOME_UNKNOWN: { status: 504, retryable: false },
  ABORTED: { status: 503, retryable: false },
  CLOSED: { status: 503, retryable: false },
  BAD_OPTIONS: { status: 400, retryable: false },
} as const satisfies Record<string, ErrorRow>;

export type ErrorCode = keyof typeof ERRORS;

/** One of the mistakes in a request. The message is a sentence that names the field. */
export interface Issue {
  readonly field: string;
  readonly message: string;
}

export interface ErrorDetails {
  /** The first field at fault, as a path: `body.run_at`, `[3].task`. */
  readonly field?: string;
  /** All mistakes, where there are several. */
  readonly issues?: readonly Issue[];
  readonly [key: string]: unknown;
}

export class BatonError extends Error {
  readonly code: ErrorCode;
  readonly details: ErrorDetails;
  /** Of an HTTP reply: Fastify and Express use it for errors that their routes throw. Null where a call got no reply. */
  readonly status: number | null;

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}, options?: ErrorOptions) {
    super(message, options);
    this.name = "BatonError";
    this.code = code;
    this.details = details;
    this.status = ERRORS[code]?.status ?? 500;
  }

  get retryable(): boolean {
    return ERRORS[this.code]?.retryable ?? false;
  }

  /** Everything that is wrong with the request: empty if the error is about something else. */
  get issues(): readonly Issue[] {
    const { field, issues } = this.details;
    return issues ?? (field === undefined ? [] : [{ field, message: this.message }]);
  }

  /** `unknown`: it may have been carried out although no answer says so. */
  get outcome(): "unknown" | "none" {
    return this.details["outcome"] === "unknown" ? "unknown" : "none";
  }
}

/** A request may have thousands of mistakes, and an answer is to be read. */
const ISSUES_MAX = 20;

/** Of a request with at least one mistake. */
export function invalid(code: ErrorCode, issues: readonly Issue[], more: ErrorDetails = {}): BatonError {
  const [{ field, message }] = issues as readonly [Issue];
  if (issues.length === 1) return new BatonError(code, message, { ...more, field });
  const shown = issues.slice(0, ISSUES_MAX);
  const rest = issues.length > shown.length ? [`and ${issues.length - shown.length} more`] : [];
  const text = [...shown.map((issue) => issue.message), ...rest].join("; ");
  return new BatonError(code, text, { ...more, field, issues: shown });
}

/** `noun`: what the name is one of. `at`: the place in a list, as `[3].`. */
export function unknownName(noun: string, name: string, known: readonly string[], at = ""): string {
  const near = nearest(name, known);
  const advice = near === null ? `known are ${known.join(", ")}` : `did you mean "${near}"?`;
  return `"${at}${name}" is not a known ${noun}; ${advice}`;
}

/** What waiting for a job rejects with when the job ended without a result. */
export class JobFailed extends BatonError {
  readonly job: string;
  readonly jobStatus: string;
  /** As it was stored: with the code that the task gave it. */
  readonly error: JobFailure | null;

  /** `jobStatus`: failed, cancelled or deleted. */
  constructor(job: string, jobStatus: string, error: JobFailure | null) {
    const why = error === null ? "" : `: ${error.message}`;
    const ended = jobStatus === "failed" ? "failed" : `was ${jobStatus}`;
    super(
      "JOB_FAILED",
      `job ${job} ${ended}${why}`,
      { job, status: jobStatus },
      error === null ? {} : { cause: causeOf(error) },
    );
    this.name = "JobFailed";
    this.job = job;
    this.jobStatus = jobStatus;
    this.error = error;
  }

  /** A handler that does not catch it is tried again, as after most errors. */
  override get retryable(): boolean {
    return true;
  }
}

interface JobFailure {
  readonly code: string;
  readonly message: string;
  readonly stack?: string;
}

/** As it was thrown in the run, with the stack of there. */
export function causeOf({ code, message, stack }: JobFailure): Error {
  const cause = Object.assign(new Error(message), { code });
  if (stack !== undefined) cause.stack = stack;
  return cause;
}

export function hasCode(error: unknown, code: ErrorCode): error is BatonError {
  return error instanceof BatonError && error.code === code;
}

/** For "did you mean"; null if none is near. */
export function nearest(name: string, known: Iterable<string>): string | null {
  let best: string | null = null;
  let bestDistance = Math.max(2, Math.floor(name.length / 3)) + 1;
  for (const candidate of known) {
    const distance = editDistance(name.toLowerCase(), candidate.toLowerCase());
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const swap = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(swap, row[j]! + 1, next[j - 1]! + 1));
    }
    row = next;
  }
  return row[b.length]!;
}

/** What was thrown, in words; it need not be an error. */
export function reasonOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
