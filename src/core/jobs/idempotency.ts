/**
 * The rules of idempotency keys. A key belongs to one task and names one job: who submits it again gets that job, as long as it is kept.
 *
 *   first job       same payload    another payload
 *   failed          a new job       a new job          (with `never`: as below)
 *   anything else   the first job   refused
 *
 * Cancelled is not failed: a caller who repeats a request must not undo what somebody has cancelled on purpose.
 */

import { BatonError } from "../errors.ts";
import type { JobId } from "../ids.ts";
import type { JobStatus } from "./job.ts";

export const KEY_REUSES = ["after_failure", "never"] as const;
export type KeyReuse = (typeof KEY_REUSES)[number];

export interface Keyed {
  readonly id: JobId;
  readonly task: string;
  readonly payload: string;
  readonly idempotencyKey: string | null;
  readonly keyReuse?: KeyReuse;
}

/** What becomes of a job whose key belongs to `first`. */
export function keyVerdict(
  first: { readonly status: JobStatus; readonly payload: string },
  { payload, keyReuse = "after_failure" }: Pick<Keyed, "payload" | "keyReuse">,
): "existed" | "conflict" | "reused" {
  if (first.status === "failed" && keyReuse === "after_failure") return "reused";
  return isSameJson(first.payload, payload) ? "existed" : "conflict";
}

/** Of two JSON texts: spaces and the order of the keys of an object do not count. */
export function isSameJson(a: string, b: string): boolean {
  return a === b || isSame(JSON.parse(a), JSON.parse(b));
}

function isSame(a: unknown, b: unknown): boolean {
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return a === b;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const names = Object.keys(a);
  const other = b as Readonly<Record<string, unknown>>;
  return (
    names.length === Object.keys(b).length &&
    names.every((name) => Object.hasOwn(b, name) && isSame((a as typeof other)[name], other[name]))
  );
}

/** A key under which it is found, in memory. Names of tasks have no space. */
export function keyName({ task, idempotencyKey }: Pick<Keyed, "task" | "idempotencyKey">): string {
  return `${task} ${idempotencyKey}`;
}

/** The refusal of the job at this place of a list; `first` may be a job of the same list. */
export function keyConflict(jobs: readonly Keyed[], at: number, first: JobId): BatonError {
  const { task, idempotencyKey } = jobs[at]!;
  const place = jobs.length > 1 ? `[${at}].` : "";
  const field = `${place}idempotency_key`;
  const twin = jobs.findIndex(({ id }) => id === first);
  const owner = twin < 0 ? `job ${first}` : `[${twin}] of the same list`;
  const message = `${field} ${JSON.stringify(idempotencyKey)} of task ${task} belongs to ${owner}, which has another payload; send the same payload, or another key`;
  return new BatonError("IDEMPOTENCY_CONFLICT", message, { field, ...(twin < 0 && { job_id: first }) });
}
