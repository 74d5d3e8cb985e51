/**
 * The cron expressions that Baton accepts, checked field by field so that errors can name the field. croner accepts more (W, LW, ?, +,
 * a year): what is not documented and tested here is refused, because a stored expression must mean the same for years.
 */

import { BatonError, nearest } from "../../core/errors.ts";

interface Field {
  readonly name: string;
  readonly min: number;
  readonly max: number;
  readonly names?: readonly string[];
}

const MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

const SECOND: Field = { name: "second", min: 0, max: 59 };
const HOUR: Field = { name: "hour", min: 0, max: 23 };
const DAY: Field = { name: "day of month", min: 1, max: 31 };
/** Sunday is 0 and 7. */
const WEEKDAY: Field = { name: "weekday", min: 0, max: 7, names: WEEKDAYS };
const FIELDS: readonly Field[] = [
  SECOND,
  { name: "minute", min: 0, max: 59 },
  HOUR,
  DAY,
  { name: "month", min: 1, max: 12, names: MONTHS },
  WEEKDAY,
];

export const NICKNAMES: Readonly<Record<string, string>> = {
  "@yearly": "0 0 1 1 *",
  "@annually": "0 0 1 1 *",
  "@monthly": "0 0 1 * *",
  "@weekly": "0 0 * * 0",
  "@daily": "0 0 * * *",
  "@midnight": "0 0 * * *",
  "@hourly": "0 * * * *",
};

export interface CronSyntax {
  /** Five or six fields, one space between them. */
  readonly pattern: string;
  /** Every hour of the day is named, so the schedule follows elapsed time through a change of the clocks. */
  readonly everyHour: boolean;
}

export function parseCron(expression: string): CronSyntax {
  const pattern = expand(expression);
  const parts = pattern.split(" ");
  if (parts.length !== 5 && parts.length !== 6) {
    const found =
      pattern === "" ? "it is empty" : `it has ${parts.length} field${parts.length === 1 ? "" : "s"}`;
    const remedy = "write minute hour day month weekday, or six with the seconds in front";
    throw refuse(expression, `${found}; ${remedy}`);
  }
  const fields = FIELDS.slice(6 - parts.length);
  let everyHour = false;
  for (const [index, field] of fields.entries()) {
    const values = new Set<number>();
    for (const item of parts[index]!.split(",")) {
      const problem = readItem(field, item, values);
      if (problem) throw refuse(expression, `${field.name} ${problem}`, field.name);
    }
    if (field === HOUR) everyHour = values.size === 24;
  }
  return { pattern, everyHour };
}

function expand(expression: string): string {
  const pattern = expression.trim().split(/\s+/).join(" ");
  if (!pattern.startsWith("@")) return pattern;
  const known = NICKNAMES[pattern.toLowerCase()];
  if (known) return known;
  const near = nearest(pattern, Object.keys(NICKNAMES));
  const remedy = near ? `did you mean ${near}?` : `known are ${Object.keys(NICKNAMES).join(", ")}`;
  throw refuse(expression, `${pattern} is not a known nickname; ${remedy}`);
}

function readItem(field: Field, item: string, values: Set<number>): string | null {
  if (item === "") return "has an empty place in its list";
  if (field === DAY && /^l$/i.test(item)) return null;
  const special = field === WEEKDAY ? /^(\w+?)(?:#(\d)|(l))$/i.exec(item) : null;
  if (special)
    return special[2] && !/[1-5]/.test(special[2])
      ? `${item}: # takes 1 to 5`
      : readValue(field, special[1]!).problem;

  const [, from, , to, , stepText] = /^(\*|\w+)(-(\w+))?(\/(\d+))?$/.exec(item) ?? [];
  if (from === undefined || (from === "*" && to !== undefined))
    return `"${item}" is not understood; ${howTo(field)}`;
  const step = stepText === undefined ? 1 : Number(stepText);
  const stepMax = Math.min(field.max - field.min + 1, field === WEEKDAY ? 7 : Infinity);
  if (step < 1 || step > stepMax) return `"${item}": a step is 1 to ${stepMax}`;
  if (stepText !== undefined && from !== "*" && to === undefined) {
    return `"${item}": a step needs a range; write ${from}-${field === WEEKDAY ? 6 : field.max}/${step}`;
  }

  const low = from === "*" ? { value: field.min, problem: null } : readValue(field, from);
  const high =
    from === "*" ? { value: field.max, problem: null } : to === undefined ? low : readValue(field, to, true);
  if (low.problem ?? high.problem) return low.problem ?? high.problem;
  if (low.value > high.value) return `"${item}" runs backwards; write it as two ranges with a comma`;
  for (let value = low.value; value <= high.value; value += step) values.add(value);
  return null;
}

function readValue(
  field: Field,
  text: string,
  endOfRange = false,
): { value: number; problem: string | null } {
  const index = field.names?.indexOf(text.toLowerCase()) ?? -1;
  // SAT-SUN runs forward: as the end of a range Sunday is 7.
  if (index >= 0)
    return {
      value: index === 0 && endOfRange && field === WEEKDAY ? 7 : index + (field === WEEKDAY ? 0 : 1),
      problem: null,
    };
  if (!/^\d{1,2}$/.test(text)) return { value: NaN, problem: `"${text}" is not understood; ${howTo(field)}` };
  const value = Number(text);
  const problem =
    value < field.min || value > field.max ? `is ${value}; allowed are ${field.min} to ${field.max}` : null;
  return { value, problem };
}

function howTo(field: Field): string {
  const names = field.names ? `, names such as ${field.names[1]!.toUpperCase()}` : "";
  const extra =
    field === DAY
      ? ", L for the last day"
      : field === WEEKDAY
        ? ", FRI#2 for the second, FRIL for the last"
        : "";
  return `use *, ${field.min} to ${field.max}${names}, lists a,b, ranges a-b, steps */n${extra}`;
}

export function refuse(expression: string, why: string, part?: string): BatonError {
  return new BatonError("BAD_SCHEDULE", `cron "${expression}": ${why}`, {
    field: "cron",
    ...(part && { part }),
  });
}
