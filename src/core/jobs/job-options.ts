/** How programs write the fields of a job: durations as `"30s"`, times as `Date`, under the names that the table gives them. */

import { durationMs, type Duration } from "../duration.ts";
import { reasonOf, unknownName, type Issue } from "../errors.ts";
import {
  type FieldValue,
  JOB_FIELDS,
  type JobField,
  type JobFieldRow,
  type JobInput,
  mistakeOf,
  shown,
} from "./job-fields.ts";

type OptionName<F extends JobField> = F extends { readonly option: infer Name extends string }
  ? Name
  : F["name"];
type OptionValue<F extends JobField> = F extends { readonly duration: true }
  ? Duration
  : F["kind"] extends "instant"
    ? Date
    : FieldValue<F>;
type OptionField = Exclude<JobField, { readonly name: "task" | "payload" }>;

export type JobOptions = { readonly [F in OptionField as OptionName<F>]?: OptionValue<F> | undefined };

const ROWS: readonly JobFieldRow[] = JOB_FIELDS;

const OPTIONS: ReadonlyMap<string, JobFieldRow> = new Map(
  ROWS.filter(({ name }) => name !== "task" && name !== "payload").map((row) => [optionName(row), row]),
);

/** The name of a field in the options of a program. */
export function optionName({ name, option = name }: JobFieldRow): string {
  return option;
}

export type OptionFields = Omit<JobInput, "task" | "payload">;

/** What options say, and all that is wrong with them. `at`: the place in a list, as `[3].`. */
export function readJobOptions(
  options: object,
  { names = [...OPTIONS.keys()], at = "" }: { readonly names?: readonly string[]; readonly at?: string } = {},
): { readonly fields: OptionFields; readonly issues: readonly Issue[] } {
  const fields: Record<string, unknown> = {};
  const issues: Issue[] = [];
  for (const [option, value] of Object.entries(options)) {
    if (value === undefined) continue;
    const row = names.includes(option) ? OPTIONS.get(option) : undefined;
    if (!row) {
      issues.push({ field: at + option, message: unknownName("option", option, names, at) });
      continue;
    }
    const said = valueOf(row, value);
    const mistake = typeof said === "string" ? { field: option, rest: said } : mistakeOf(row, said.value);
    if (mistake) {
      const field = at + mistake.field.replace(row.wire, option);
      issues.push({ field, message: `${field} ${mistake.rest}` });
    } else if (typeof said !== "string") fields[row.name] = said.value;
  }
  if (fields["runAt"] !== undefined && fields["delayMs"] !== undefined)
    issues.push({ field: `${at}runAt`, message: `${at}runAt and delay exclude each other; give one` });
  if (fields["keyReuse"] !== undefined && fields["idempotencyKey"] === undefined)
    issues.push({
      field: `${at}keyReuse`,
      message: `${at}keyReuse is about an idempotencyKey; give that as well`,
    });
  return { fields, issues };
}

/** A text is what is wrong with it, in words that follow the name. */
function valueOf({ duration, kind }: JobFieldRow, value: unknown): { readonly value: unknown } | string {
  if (kind === "instant") {
    const at = value instanceof Date ? value.getTime() : Number.NaN;
    return Number.isNaN(at) ? `must be a valid Date, not ${shown(value)}` : { value: at };
  }
  if (!duration) return { value };
  try {
    return { value: durationMs(value) };
  } catch (error) {
    return reasonOf(error);
  }
}
