/** Classifies the errors of commands: refused by the server, not sent, or outcome unknown. */

import { BatonError } from "../../../core/errors.ts";
import { ErrorReply } from "./package.ts";

/** `not_done`: the server has not carried it out. `unknown`: it may have. */
export type RedisOutcome = "not_done" | "unknown";

/** The first word of what the server said, such as NOSCRIPT; null for an error that no server sent. */
function replyCode(error: unknown): string | null {
  return error instanceof ErrorReply ? (/^[A-Z]+/.exec(error.message)?.[0] ?? "ERR") : null;
}

export function isNoScript(error: unknown): boolean {
  return replyCode(error) === "NOSCRIPT";
}

/** What another server would do: this one became a replica, or it ends. Worth a new connection, which may lead to the next primary. */
export function isElsewhere(error: unknown): boolean {
  const code = replyCode(error);
  return code === "READONLY" || code === "MASTERDOWN" || code === "UNBLOCKED";
}

const PASSING: Readonly<Record<string, string>> = {
  LOADING: "it loads its data",
  BUSY: "a script keeps it busy",
  READONLY: "the server is a replica and takes no writes",
  MASTERDOWN: "the server is a replica that has lost its primary",
  UNBLOCKED: "the server became a replica",
  MISCONF: "it cannot save its data and takes no writes",
  OOM: "it is out of memory; raise maxmemory",
  NOREPLICAS: "it has too few replicas to take writes",
  CLUSTERDOWN: "its cluster is down",
  TRYAGAIN: "its cluster moves keys",
};
const REFUSED: ReadonlySet<string> = new Set(["NOAUTH", "WRONGPASS", "NOPERM"]);

export function unavailable(reason: string, outcome: RedisOutcome, cause?: unknown): BatonError {
  return new BatonError(
    "STORE_UNAVAILABLE",
    `Redis is not available: ${reason}`,
    { outcome },
    cause === undefined ? undefined : { cause },
  );
}

/** Of a command, or of setting up a connection. What is left as it was is a mistake of ours. */
export function translated(error: unknown, outcome: RedisOutcome): unknown {
  if (error instanceof BatonError) return error;
  const code = replyCode(error);
  const reason = error instanceof Error ? error.message || error.name : String(error);
  if (code === null) return unavailable(reason, outcome, error);
  if (REFUSED.has(code)) {
    const message = `Redis refused: ${reason}; check user and password in its URL, and what that user may do`;
    return new BatonError("BAD_CONFIG", message, { field: "redis" }, { cause: error });
  }
  if (code === "MOVED" || code === "ASK") {
    const message = `Redis keeps our keys on another server (${reason}); give the URL of a primary that has them all`;
    return new BatonError("BAD_CONFIG", message, { field: "redis" }, { cause: error });
  }
  const passing = PASSING[code];
  return passing === undefined ? error : unavailable(`${passing} (${reason})`, "not_done", error);
}
