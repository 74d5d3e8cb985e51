/** What went wrong with a request, in words for whoever looks at the page. */

export class Problem extends Error {
  /** A stable code of the API, or UNREACHABLE, TIMEOUT or BAD_REPLY. */
  readonly code: string;
  /** Null when there was no answer. */
  readonly status: number | null;
  /** As `payload.text`. */
  readonly field: string | null;
  readonly body: Readonly<Record<string, unknown>>;

  constructor(code: string, message: string, rest: Partial<Pick<Problem, "status" | "field" | "body">> = {}) {
    super(message);
    this.name = "Problem";
    this.code = code;
    this.status = rest.status ?? null;
    this.field = rest.field ?? null;
    this.body = rest.body ?? {};
  }
}

/** What to do about those codes whose message does not say it. */
const REMEDIES: Readonly<Record<string, string>> = {
  UNREACHABLE: "Check that the node runs, or open the page of another node.",
  TIMEOUT: "The node may be busy or cut off. Try again, or ask another node.",
  BAD_REPLY: "Something between this page and the node answered in its place; check the proxy.",
  NOT_LEADER: "Ask the node that leads.",
  NO_LEADER: "An election is under way; it takes a few seconds. Then try again.",
  owner_node_unreachable:
    "The node that has this job cannot be reached. It answers again when that node is back.",
  TOO_MANY_REQUESTS: "Wait a moment and try again.",
  STORE_UNAVAILABLE: "The database cannot be reached; look at it first.",
  DRAINING: "This node is being drained. Use another one, or resume it.",
  FORBIDDEN: "Sign in as somebody who may do this, or ask one of them.",
};

export function remedyFor(problem: Problem): string | null {
  return REMEDIES[problem.code] ?? null;
}

export function asProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  return new Problem("PAGE", error instanceof Error ? error.message : String(error));
}

/** Flat, as every refusal of the API: `{"error": CODE, "message": …, "field"?: …}`. */
export function problemIn(status: number, body: unknown): Problem {
  const told = (typeof body === "object" && body !== null ? body : {}) as Record<string, unknown>;
  const { error, message, field } = told;
  if (typeof error !== "string") {
    return new Problem("BAD_REPLY", `the answer (${status}) is not one of a Baton node`, { status });
  }
  const text = typeof message === "string" ? message : "this node does not lead";
  return new Problem(error, text, { status, field: typeof field === "string" ? field : null, body: told });
}
