/** The fields that operations share. Descriptions follow "must be …", in the OpenAPI document and in error messages. */

import { z } from "zod";
import { NODE_NAME, THING_NAME } from "../../core/ids.ts";
import { JOB_STATUSES, type JobStatus } from "../../core/jobs/job.ts";
import {
  FILTER_FIELDS,
  JOB_FIELDS,
  jobField,
  type FieldFilters,
  type JobFieldRow,
  type WireFields,
} from "../../core/jobs/job-fields.ts";

const UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";

export function matching(pattern: RegExp, description: string) {
  return z.string().regex(pattern).describe(description);
}

/** A text that is not empty. */
export function bounded(max: number, description: string) {
  return z.string().min(1).max(max).describe(description);
}

/** The same language as `isJobId`, as a pattern that the compiled validators understand. */
export const JOB_ID = new RegExp(`^${NODE_NAME.source.slice(1, -1)}-${UUID}$`);

export const JobIdText = matching(
  JOB_ID,
  "a job id: the name of a node, a dash and a uuid, as POST /jobs answered it",
);

export const Name = matching(THING_NAME, jobField("task").must);

/** With its zone: a time without one means something else on every machine. */
export const Instant = z.iso.datetime({ offset: true }).describe(jobField("run_at").must);

/** Control characters are kept out: such a text travels in headers and in logs. */
const text = (max: number) => z.string().regex(new RegExp(`^\\P{Cc}{1,${max}}$`, "u"));

function schemaOf({
  kind,
  min = 0,
  max = 0,
  itemsMax = 0,
  choices,
  must: description,
}: JobFieldRow): z.ZodType {
  switch (kind) {
    case "name":
      return Name;
    case "json":
      return z.unknown().describe(description);
    case "instant":
      return Instant;
    case "integer":
      return z.int().min(min).max(max).describe(description);
    case "text":
      return text(max).describe(description);
    case "choice":
      return z.enum(choices as readonly [string, ...string[]]).describe(description);
    case "boolean":
      return z.boolean().describe(description);
    case "texts":
      return z.array(textItem(max)).max(itemsMax).describe(description);
  }
}

function textItem(max: number) {
  return text(max).describe(`a text of 1 to ${max} characters without control characters`);
}

type Schemas = { [W in keyof WireFields]: z.ZodType<WireFields[W], WireFields[W]> };
type Optional<T> = { [W in keyof T]: z.ZodOptional<T[W] & z.ZodType> };

export const JOB_SCHEMAS = Object.fromEntries(
  JOB_FIELDS.map((row: JobFieldRow) => [row.wire, schemaOf(row)]),
) as Schemas;

export const OPTIONAL_JOB_SCHEMAS = Object.fromEntries(
  JOB_FIELDS.filter((row: JobFieldRow) => !row.required).map((row) => [
    row.wire,
    JOB_SCHEMAS[row.wire].optional(),
  ]),
) as Omit<Optional<Schemas>, "task">;

export const FILTER_SCHEMAS = Object.fromEntries(
  FILTER_FIELDS.map((row) => {
    const schema = row.kind === "texts" ? textItem(row.max ?? 0) : schemaOf(row);
    return [row.filter.name, schema.optional()];
  }),
) as { [N in keyof FieldFilters]-?: z.ZodOptional<z.ZodString> };

export const {
  priority: Priority,
  max_attempts: Attempts,
  timeout_ms: Timeout,
  idempotency_key: IdempotencyKey,
  payload: Payload,
  allow_unknown: AllowUnknown,
} = JOB_SCHEMAS;

export const StatusCounts = z.object(
  Object.fromEntries(JOB_STATUSES.map((status) => [status, z.int()])) as Record<JobStatus, z.ZodInt>,
);

export const Reason = z.string().max(1_000).describe("a text of at most 1000 characters");

export function whole(min: number, max: number, note = "") {
  return z.int().min(min).max(max).describe(`a whole number from ${min} to ${max}${note}`);
}

export function milliseconds(min: number, max: number, note = "") {
  return whole(min, max).describe(`a number of milliseconds from ${min} to ${max}${note}`);
}

export function limit(standard: number, max: number) {
  return whole(1, max).default(standard);
}

export const NodeNameText = matching(
  NODE_NAME,
  "the name of a node: 1 to 63 letters, digits or . _ - that begin and end with a letter or a digit",
);

export const IdParams = z.strictObject({ id: JobIdText });
export const NameParams = z.strictObject({ name: Name });
export interface ByName {
  readonly params: z.output<typeof NameParams>;
}
export const NodeParams = z.strictObject({ name: NodeNameText });
