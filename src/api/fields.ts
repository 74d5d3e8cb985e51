/**
 * The fields that operations share. A field's description is written to follow "must be …": the OpenAPI document shows
 * it, and a refusal repeats it as the remedy.
 */

import { z } from "zod";
import { NODE_NAME, THING_NAME } from "../core/ids.ts";
import {
  ATTEMPTS_MAX,
  DELAY_MS_MAX,
  IDEMPOTENCY_KEY_LENGTH_MAX,
  PRIORITY_MAX,
  PRIORITY_MIN,
  TIMEOUT_MS_MAX,
} from "../core/job.ts";

const UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";

/** The same language as `isJobId`, as a pattern that the compiled validators understand. */
export const JOB_ID = new RegExp(`^${NODE_NAME.source.slice(1, -1)}-${UUID}$`);

export const JobIdText = z.string().regex(JOB_ID).meta({
  description: "a job id: the name of a node, a dash and a uuid, as POST /jobs answered it",
});

export const Name = z.string().regex(THING_NAME).meta({
  description:
    "a name of 1 to 128 letters, digits or . _ : / - that begins and ends with a letter or a digit",
});

/** With its zone: a time without one means something else on every machine. */
export const Instant = z.iso.datetime({ offset: true }).meta({
  description: "an ISO-8601 time with its zone, as 2026-01-31T09:00:00Z (in a URL, write + as %2B)",
});

export const Priority = z
  .int()
  .min(PRIORITY_MIN)
  .max(PRIORITY_MAX)
  .meta({ description: `a whole number from ${PRIORITY_MIN} to ${PRIORITY_MAX}; higher runs first` });

export const Attempts = z
  .int()
  .min(1)
  .max(ATTEMPTS_MAX)
  .meta({ description: `a whole number from 1 to ${ATTEMPTS_MAX}` });

export const Timeout = z
  .int()
  .min(1)
  .max(TIMEOUT_MS_MAX)
  .meta({ description: `a number of milliseconds from 1 to ${TIMEOUT_MS_MAX}` });

export const Delay = z
  .int()
  .min(0)
  .max(DELAY_MS_MAX)
  .meta({
    description: `a number of milliseconds from 0 to ${DELAY_MS_MAX} (a year); further ahead, give run_at`,
  });

/** Control characters are kept out: the key travels in a header and in logs. */
export const IdempotencyKey = z
  .string()
  .regex(new RegExp(`^\\P{Cc}{1,${IDEMPOTENCY_KEY_LENGTH_MAX}}$`, "u"))
  .meta({
    description: `a text of 1 to ${IDEMPOTENCY_KEY_LENGTH_MAX} characters without control characters`,
  });

export const Payload = z.unknown().meta({ description: "any JSON value of at most 64 levels" });

export const Reason = z.string().max(1_000).meta({ description: "a text of at most 1000 characters" });

export function limit(standard: number, max: number) {
  return z
    .int()
    .min(1)
    .max(max)
    .default(standard)
    .meta({ description: `a whole number from 1 to ${max}` });
}

export const NodeNameText = z.string().regex(NODE_NAME).meta({
  description:
    "the name of a node: 1 to 63 letters, digits or . _ - that begin and end with a letter or a digit",
});

export const IdParams = z.strictObject({ id: JobIdText });
export const NameParams = z.strictObject({ name: Name });
export const NodeParams = z.strictObject({ name: NodeNameText });

export function isoOf(at: number): string {
  return new Date(at).toISOString();
}

export function isoOrNull(at: number | null): string | null {
  return at === null ? null : new Date(at).toISOString();
}
