/** The checks of what a caller submits, now or by a schedule. `at` is put before the name of a field: the place in a list. */

import { type BatonError, invalid, type Issue, reasonOf } from "../../core/errors.ts";
import { mistakesIn } from "../../core/jobs/job-fields.ts";
import { type JobOptions, type OptionFields, readJobOptions } from "../../core/jobs/job-options.ts";
import { isPlainJson, jsonIssues } from "../../core/plain-json.ts";
import type { Checked } from "../tasks/task.ts";

/** Null for a request without mistakes, as nearly all are. */
export function fieldIssues(fields: object, at = ""): Issue[] | null {
  const mistakes = mistakesIn(fields);
  return mistakes && mistakes.map(({ field, rest }) => issue(field, rest, at));
}

/** What code says of a job. Throws BAD_REQUEST with all that is wrong. */
export function optionFields(options: JobOptions, at = ""): OptionFields {
  const { fields, issues } = readJobOptions(options);
  const placed = issues.map(({ field, message }) => ({ field: at + field, message: at + message }));
  if (placed.length > 0) throw invalid("BAD_REQUEST", placed);
  return fields;
}

export function payloadText(payload: unknown, at = ""): string {
  if (payload === undefined) return "null";
  let text: string;
  try {
    text = JSON.stringify(payload);
  } catch (error) {
    const issues = jsonIssues(payload, `${at}payload`);
    throw issues.length > 0
      ? invalid("BAD_REQUEST", issues)
      : bad("payload", `must be plain JSON: ${reasonOf(error)}`, at);
  }
  if (!isPlainJson(payload)) throw invalid("BAD_REQUEST", jsonIssues(payload, `${at}payload`));
  return text;
}

/** Throws unless the schema of the task has accepted the payload and nothing else was wrong either. */
export function accepted(verdict: Checked, at = "", others: readonly Issue[] | null = null): void {
  if (verdict.ok && !others) return;
  const ofPayload = verdict.ok ? [] : verdict.issues;
  const issues = ofPayload.map(({ field, message }) => {
    return { field: `${at}${field}`, message: `${at}${field}: ${message}` };
  });
  throw invalid(others ? "BAD_REQUEST" : "BAD_PAYLOAD", [...(others ?? []), ...issues]);
}

export function bad(field: string, rest: string, at = ""): BatonError {
  return invalid("BAD_REQUEST", [issue(field, rest, at)]);
}

export function issue(field: string, rest: string, at = ""): Issue {
  return { field: `${at}${field}`, message: `${at}${field} ${rest}` };
}
