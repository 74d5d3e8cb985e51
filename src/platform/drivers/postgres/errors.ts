/** Classifies the errors of statements: rolled back, outcome unknown, refused permanently, or a bug in Baton. */

import { BatonError } from "../../../core/errors.ts";
import { DatabaseError } from "./package.ts";

function sqlState(error: unknown): string | null {
  return error instanceof DatabaseError ? (error.code ?? null) : null;
}

export function isUniqueViolation(error: unknown): boolean {
  return sqlState(error) === "23505";
}

export function isNotPermitted(error: unknown): boolean {
  return sqlState(error) === "42501";
}

/** Serialization failure and deadlock: rolled back for sure. */
export function isAborted(error: unknown): boolean {
  const state = sqlState(error);
  return state === "40001" || state === "40P01";
}

/** Also of an error that was translated. Rolled back for sure. */
export function isLockTimeout(error: unknown): boolean {
  return sqlState(error instanceof BatonError ? error.cause : error) === "55P03";
}

/** The connection is gone or useless: class 08, an ending server or backend, or an error that no server sent. */
export function isLost(error: unknown): boolean {
  if (error instanceof BatonError) return false;
  const state = sqlState(error);
  if (state === null) return isNetworkError(error);
  return state.startsWith("08") || (state.startsWith("57P") && state !== "57P05");
}

export class NoAnswer extends Error {
  constructor(deadlineMs: number, cause: unknown) {
    super(`no answer within ${deadlineMs} ms`, { cause });
  }
}

/** The driver reports a lost connection by its text alone. */
const LOST = /terminat|timeout|not queryable|closed|ended/i;

function isNetworkError(error: unknown): boolean {
  if (error instanceof NoAnswer) return true;
  return error instanceof Error && ("syscall" in error || "errno" in error || LOST.test(error.message));
}

/** Lack of resources (53), operator intervention (57), aborted (40), locks (55P03), a standby that takes no writes (25006). */
const PASSING = /^(?:08|40|53|57|55P03|25006)/;
/** Wrong password or user, no such database. */
const REFUSED = /^(?:28|3D000)/;

export function translated(error: unknown): unknown {
  const state = sqlState(error);
  const reason = error instanceof Error ? error.message || error.name : String(error);
  if (state !== null && REFUSED.test(state)) {
    const message = `the database refused the connection: ${reason}; check user, password and database in its URL`;
    return new BatonError("BAD_CONFIG", message, { field: "store" }, { cause: error });
  }
  if (state === null ? isNetworkError(error) || error instanceof AggregateError : PASSING.test(state)) {
    return state === DISK_FULL
      ? unavailable(reason, error, "the disk of the database is full; free some space there")
      : unavailable(reason, error);
  }
  return error;
}

const DISK_FULL = "53100";

export function unavailable(reason: string, cause?: unknown, what = "the database is not available") {
  const options = cause === undefined ? undefined : { cause };
  return new BatonError("STORE_UNAVAILABLE", `${what}: ${reason}`, {}, options);
}
