/** The checks of what a caller submits, now or by a schedule. `at` is put before the name of a field: the place in a list. */

import { BatonError, reasonOf } from "../../core/errors.ts";
import { mistakeIn } from "../../core/jobs/job-fields.ts";
import { notPlain, type NotPlain } from "./plain-json.ts";
import type { Checked } from "../tasks/task.ts";

export function checkFields(fields: object, at = ""): void {
  const mistake = mistakeIn(fields);
  if (mistake) throw bad(mistake.field, mistake.rest, at);
}

export function payloadText(payload: unknown, at = ""): string {
  if (payload === undefined) return "null";
  let text: string;
  try {
    text = JSON.stringify(payload);
  } catch (error) {
    const found = notPlain(payload, new Set());
    throw found ? lossy(found, at) : bad("payload", `must be plain JSON: ${reasonOf(error)}`, at);
  }
  const found = notPlain(payload);
  if (found) throw lossy(found, at);
  return text;
}

function lossy({ path, why }: NotPlain, at: string): BatonError {
  return bad(`payload${path}`, `must be plain JSON: it ${why}`, at);
}

/** Throws unless the schema of the task has accepted the payload. */
export function accepted(verdict: Checked, at = ""): void {
  if (verdict.ok) return;
  const field = `${at}${verdict.field}`;
  throw new BatonError("BAD_PAYLOAD", `${field}: ${verdict.message}`, { field });
}

export function bad(field: string, rest: string, at = ""): BatonError {
  return new BatonError("BAD_REQUEST", `${at}${field} ${rest}`, { field: `${at}${field}` });
}
