/**
 * The fields of a job that a caller may set, each defined once. Request and response bodies, validation, columns, list
 * filters, options in code, command-line options and the form of the dashboard are derived from this table.
 *
 * Not here: defaults (jobs/submit/submitter.ts), and fields that only Baton writes (core/jobs/job.ts). A new column
 * needs a migration in the schema.ts of each store; a list that is also a filter needs its side table there as well.
 */

import { THING_NAME } from "../ids.ts";
import { KEY_REUSES } from "./idempotency.ts";

export interface JobFieldRow {
  readonly name: string;
  readonly wire: string;
  readonly kind: "name" | "json" | "integer" | "instant" | "text" | "texts" | "choice" | "boolean";
  /** As a program writes it, where that is not the name: a time as `Date`, and milliseconds as a `Duration`. */
  readonly option?: string;
  readonly duration?: true;
  readonly required?: true;
  readonly min?: number;
  /** Of an integer, or the characters of a text or of each text of a list. */
  readonly max?: number;
  readonly itemsMax?: number;
  readonly choices?: readonly string[];
  /** Follows "must be" in refusals and in the OpenAPI document. */
  readonly must: string;
  /** Type of the column `wire` of the table `job`; null if the field is stored in another form. */
  readonly column: "text" | "int" | "bigint" | "text[]" | null;
  /** Most jobs leave it empty: statements for plain jobs and claims omit it. */
  readonly rare?: true;
  /** It may be said of a schedule too. */
  readonly scheduled?: true;
  readonly flag?: { readonly text: string; readonly about: string };
  readonly form?: { readonly label: string; readonly hint: string };
  /** In the facts of a job. */
  readonly fact?: { readonly cli: string; readonly page: string; readonly as?: "duration" };
  /** A list of texts has a side table `job_<filter>`, which is walked instead of all jobs. */
  readonly filter?: {
    readonly name: string;
    readonly about: string;
    readonly phrase: string;
    readonly label: string;
  };
}

export const PRIORITY_MIN = -100;
export const PRIORITY_MAX = 100;
export const ATTEMPTS_MAX = 1_000;
/** The maximum of a timer of Node, about 24 days. */
export const TIMEOUT_MS_MAX = 2 ** 31 - 1;
/** A year: a longer delay is a mistake in the unit more often than intended. */
export const DELAY_MS_MAX = 366 * 24 * 3_600_000;
export const IDEMPOTENCY_KEY_LENGTH_MAX = 255;
const TAGS_MAX = 16;
const TAG_LENGTH_MAX = 64;

const A_NAME =
  "a name of 1 to 128 letters, digits or . _ : / - that begins and ends with a letter or a digit";

export const JOB_FIELDS = [
  {
    name: "task",
    wire: "task",
    kind: "name",
    required: true,
    must: A_NAME,
    column: null,
    filter: { name: "task", about: "only jobs of this task", phrase: "of task", label: "Task" },
  },
  {
    name: "payload",
    wire: "payload",
    kind: "json",
    must: "any JSON value of at most 64 levels",
    column: "text",
  },
  {
    name: "queue",
    wire: "queue",
    kind: "name",
    must: A_NAME,
    column: null,
    scheduled: true,
    flag: { text: "--queue <name>", about: "queue to put it into" },
    form: { label: "Queue", hint: "what the task says unless you say otherwise" },
    filter: { name: "queue", about: "only jobs of this queue", phrase: "in queue", label: "Queue" },
  },
  {
    name: "priority",
    wire: "priority",
    kind: "integer",
    min: PRIORITY_MIN,
    max: PRIORITY_MAX,
    must: `a whole number from ${PRIORITY_MIN} to ${PRIORITY_MAX}; higher runs first`,
    column: "int",
    scheduled: true,
    flag: { text: "--priority <number>", about: "from -100 to 100; higher runs first" },
    form: { label: "Priority", hint: "from -100 to 100; higher runs first" },
  },
  {
    name: "runAt",
    wire: "run_at",
    kind: "instant",
    min: 0,
    max: 8.64e15,
    must: "an ISO-8601 time with its zone, as 2026-01-31T09:00:00Z (in a URL, write + as %2B)",
    column: null,
    flag: { text: "--run-at <time>", about: "run it at this time, such as 2026-01-31T09:00:00Z" },
  },
  {
    name: "delayMs",
    wire: "delay_ms",
    kind: "integer",
    option: "delay",
    duration: true,
    min: 0,
    max: DELAY_MS_MAX,
    must: `a number of milliseconds from 0 to ${DELAY_MS_MAX} (a year); further ahead, give run_at`,
    column: null,
    flag: { text: "--delay <duration>", about: "run it this much later, such as 30s" },
    form: { label: "Delay", hint: "in milliseconds, from now" },
  },
  {
    name: "maxAttempts",
    wire: "max_attempts",
    kind: "integer",
    option: "attempts",
    min: 1,
    max: ATTEMPTS_MAX,
    must: `a whole number from 1 to ${ATTEMPTS_MAX}`,
    column: "int",
    scheduled: true,
    flag: { text: "--attempts <number>", about: "how many attempts it has" },
    form: { label: "Attempts", hint: "how often it may fail" },
  },
  {
    name: "timeoutMs",
    wire: "timeout_ms",
    kind: "integer",
    option: "timeout",
    duration: true,
    min: 1,
    max: TIMEOUT_MS_MAX,
    must: `a number of milliseconds from 1 to ${TIMEOUT_MS_MAX}`,
    column: "bigint",
    scheduled: true,
    flag: { text: "--job-timeout <duration>", about: "longest run, such as 5m" },
    form: { label: "Longest run", hint: "in milliseconds" },
    fact: { cli: "timeout", page: "Longest run", as: "duration" },
  },
  {
    name: "idempotencyKey",
    wire: "idempotency_key",
    kind: "text",
    max: IDEMPOTENCY_KEY_LENGTH_MAX,
    must: `a text of 1 to ${IDEMPOTENCY_KEY_LENGTH_MAX} characters without control characters`,
    column: "text",
    flag: { text: "--idempotency-key <key>", about: "the same key of a task gives the same job" },
    form: { label: "Idempotency key", hint: "the same key of a task is the same job" },
    fact: { cli: "key", page: "Idempotency key" },
  },
  {
    name: "keyReuse",
    wire: "key_reuse",
    kind: "choice",
    choices: KEY_REUSES,
    must: `${KEY_REUSES.join(" or ")}: whether the idempotency key may make another job when the first one has failed`,
    column: null,
    flag: { text: "--key-reuse <when>", about: "whether the key may be used again: after_failure or never" },
  },
  {
    name: "tags",
    wire: "tags",
    kind: "texts",
    max: TAG_LENGTH_MAX,
    itemsMax: TAGS_MAX,
    must: `a list of at most ${TAGS_MAX} texts of 1 to ${TAG_LENGTH_MAX} characters without control characters`,
    column: "text[]",
    rare: true,
    flag: { text: "--tag <tag>", about: "a tag to find it by; repeat it for more" },
    form: { label: "Tags", hint: "one on each line, to find it by" },
    fact: { cli: "tags", page: "Tags" },
    filter: { name: "tag", about: "only jobs with this tag", phrase: "tagged", label: "Tag" },
  },
  {
    name: "allowUnknown",
    wire: "allow_unknown",
    kind: "boolean",
    must: "true or false: whether to take a task that no node of the cluster has had so far",
    column: null,
    scheduled: true,
    flag: {
      text: "--allow-unknown",
      about: "take it although no node has had the task so far, as before a deploy of its workers",
    },
  },
] as const satisfies readonly JobFieldRow[];

export type JobField = (typeof JOB_FIELDS)[number];

export type FieldValue<Field extends JobField> = Field extends {
  readonly choices: readonly (infer Choice)[];
}
  ? Choice
  : ValueOf<Field["kind"]>;
type ValueOf<Kind> = Kind extends "integer" | "instant"
  ? number
  : Kind extends "texts"
    ? readonly string[]
    : Kind extends "json"
      ? unknown
      : Kind extends "boolean"
        ? boolean
        : string;
type Wire<Field extends JobField> = Field["kind"] extends "instant"
  ? string
  : Field["kind"] extends "texts"
    ? string[]
    : FieldValue<Field>;
type Rare = Extract<JobField, { readonly rare: true }>;
type Filtering = Extract<JobField, { readonly filter: object }>;

/** As services of a node write a job: everything but the task has a default. */
export type JobInput = {
  readonly [F in JobField as F extends { required: true } ? F["name"] : never]: FieldValue<F>;
} & {
  readonly [F in JobField as F extends { required: true } ? never : F["name"]]?: FieldValue<F> | undefined;
};
/** In JSON. */
export type WireFields = { [F in JobField as F["wire"]]: Wire<F> };
/** Of a stored job: empty lists instead of missing ones. */
export type RareFields = { readonly [F in Rare as F["name"]]: FieldValue<F> };
export type RareBody = { [F in Rare as F["wire"]]: Wire<F> };
export type FieldFilters = { readonly [F in Filtering as F["filter"]["name"]]?: string };

const ROWS: readonly JobFieldRow[] = JOB_FIELDS;

export const COLUMN_FIELDS = ROWS.filter(({ column }) => column !== null);
export const RARE_FIELDS = ROWS.filter(({ rare }) => rare);
export const FILTER_FIELDS = rowsWith("filter");
/** Filters with a side table. */
export const LISTED_FILTERS = FILTER_FIELDS.filter(({ kind }) => kind === "texts").map(
  ({ filter }) => filter.name,
);
export const FLAG_FIELDS = rowsWith("flag");
export const FORM_FIELDS = rowsWith("form");
export const FACT_FIELDS = rowsWith("fact");
const CHECKED: ReadonlyMap<string, JobFieldRow> = new Map(
  ROWS.filter(({ name, kind }) => name !== "task" && kind !== "json").map((row) => [row.name, row]),
);

function rowsWith<Name extends keyof JobFieldRow>(name: Name) {
  type With = JobFieldRow & Required<Pick<JobFieldRow, Name>>;
  return ROWS.filter((row): row is With => row[name] !== undefined);
}

export function jobField<W extends JobField["wire"]>(wire: W): JobFieldRow & { readonly wire: W } {
  return ROWS.find((row) => row.wire === wire) as JobFieldRow & { readonly wire: W };
}

export type Fields = Readonly<Record<string, unknown>>;

export function filtersIn(query: object): FieldFilters {
  const found = FILTER_FIELDS.map(({ filter: { name } }) => [name, (query as Fields)[name]]);
  return Object.fromEntries(found.filter(([, value]) => value !== undefined && value !== ""));
}

/** The filter with a side table; there is at most one. */
export function listedFilter(query: object): { readonly name: string; readonly text: string } | null {
  for (const name of LISTED_FILTERS) {
    const text = (query as Fields)[name];
    if (text !== undefined) return { name, text: text as string };
  }
  return null;
}

/** Null for most jobs. */
export function rareIn(input: object): Partial<RareFields> | null {
  let found: Record<string, unknown> | null = null;
  for (const { name, kind } of RARE_FIELDS) {
    const value = (input as Fields)[name];
    if (value === undefined || value === null) continue;
    if (kind !== "texts") (found ??= {})[name] = value;
    else if ((value as string[]).length > 0) (found ??= {})[name] = [...new Set(value as string[])];
  }
  return found;
}

export interface FieldMistake {
  readonly name: string;
  /** Its wire name, with the index in a list: `tags[3]`. */
  readonly field: string;
  /** What follows the field in a sentence. */
  readonly rest: string;
}

/** Null for a job without one, as nearly all are. The name of the task and the payload are checked elsewhere. */
export function mistakesIn(input: object): FieldMistake[] | null {
  let mistakes: FieldMistake[] | null = null;
  // This runs for every job, so only given fields are checked.
  for (const name in input) {
    const row = CHECKED.get(name);
    const value = row && (input as Fields)[name];
    if (value === undefined) continue;
    const found = mistakeOf(row!, value);
    if (found) (mistakes ??= []).push(found);
  }
  return mistakes;
}

export function mistakeOf(row: JobFieldRow, value: unknown): FieldMistake | null {
  const { name, wire: field, kind, min = 0, max = 0, itemsMax = 0 } = row;
  switch (kind) {
    case "integer":
    case "instant":
      return Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max
        ? null
        : { name, field, rest: `must be a whole number from ${min} to ${max}, not ${shown(value)}` };
    case "name":
      return typeof value === "string" && THING_NAME.test(value)
        ? null
        : { name, field, rest: "must be letters, digits and . _ : / - (up to 128)" };
    case "text":
      return isText(value, max) ? null : { name, field, rest: textRule(max) };
    case "texts": {
      if (!Array.isArray(value) || value.length > itemsMax)
        return { name, field, rest: `must be ${row.must}` };
      const at = value.findIndex((each) => !isText(each, max));
      return at < 0 ? null : { name, field: `${field}[${at}]`, rest: textRule(max) };
    }
    case "choice":
      return row.choices!.includes(value as string)
        ? null
        : { name, field, rest: `must be ${row.choices!.join(" or ")}, not ${shown(value)}` };
    case "boolean":
      return typeof value === "boolean"
        ? null
        : { name, field, rest: `must be true or false, not ${shown(value)}` };
    case "json":
      return null;
  }
}

export function shown(value: unknown): string {
  return typeof value === "string" ? JSON.stringify(value) : String(value);
}

function isText(value: unknown, max: number): boolean {
  return (
    typeof value === "string" &&
    value.length > 0 &&
    value.length <= max &&
    !/\p{Cc}/u.test(value) && // not every store can keep a NUL
    value.isWellFormed() // what is not comes back changed from the store, and two texts would be one
  );
}

function textRule(max: number): string {
  return `must be 1 to ${max} characters of well-formed Unicode without control characters`;
}

export function filterText(
  filter: FieldFilters & { status?: string; since?: string; until?: string; error_code?: string },
): string {
  const { status, since, until, error_code: code } = filter;
  const phrases = FILTER_FIELDS.map(({ filter: { name, phrase } }) => {
    const text = (filter as Fields)[name];
    return text ? `${phrase} ${String(text)}` : null;
  });
  return [
    status,
    "jobs",
    ...phrases,
    since && `since ${since}`,
    until && `until ${until}`,
    code && `with the error ${code}`,
  ]
    .filter(Boolean)
    .join(" ");
}
