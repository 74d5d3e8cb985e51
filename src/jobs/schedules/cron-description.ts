/** Describes the timing of a schedule in English, for people who do not read cron. The description matches cron.ts. */

import type { Timing } from "../../core/schedules/schedule.ts";
import { NICKNAMES } from "./cron-syntax.ts";

const MONTHS = [
  "January",
  "February",
  "March",
  "April",
  "May",
  "June",
  "July",
  "August",
  "September",
  "October",
  "November",
  "December",
];
const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const NTH = ["", "first", "second", "third", "fourth", "fifth"];
/** More times of day than this are told as minutes and hours. */
const TIMES_MAX = 6;

/** Of a timing that was accepted; one that was not is repeated as it is written. */
export function timingInWords(timing: Timing): string {
  if (timing.kind === "every") return `every ${lengthInWords(timing.everyMs)}`;
  const words = cronInWords(timing.expression);
  return words === null ? timing.expression : `${words}, ${zoneInWords(timing.zone)}`;
}

function zoneInWords(zone: string): string {
  return zone === "UTC" || zone === "Etc/UTC" ? "UTC" : `${zone} time`;
}

function lengthInWords(ms: number): string {
  const parts: string[] = [];
  let rest = ms;
  for (const [unit, length] of [
    ["day", 86_400_000],
    ["hour", 3_600_000],
    ["minute", 60_000],
    ["second", 1_000],
    ["ms", 1],
  ] as const) {
    const count = Math.floor(rest / length);
    rest -= count * length;
    if (count > 0) parts.push(unit === "ms" ? `${count} ms` : plural(count, unit));
  }
  // "every hour", not "every 1 hour".
  return parts.length === 1 ? parts[0]!.replace(/^1 /, "") : parts.join(" ");
}

interface Field {
  readonly all: boolean;
  /** Of a plain step through all values. */
  readonly step: number | null;
  /** As one range, if it is one. */
  readonly range: readonly [number, number] | null;
  readonly values: readonly number[];
  /** `L`, `5#2`, `5L`. */
  readonly special: readonly string[];
}

const RANGES = [
  [0, 59],
  [0, 59],
  [0, 23],
  [1, 31],
  [1, 12],
  [0, 6],
] as const;
const NAMES: Readonly<Record<number, readonly string[]>> = { 4: MONTHS, 5: DAYS };

export function cronInWords(expression: string): string | null {
  const pattern = NICKNAMES[expression.trim().toLowerCase()] ?? expression.trim();
  const parts = pattern.split(/\s+/);
  if (parts.length !== 5 && parts.length !== 6) return null;
  const texts = parts.length === 5 ? ["0", ...parts] : parts;
  const fields = texts.map((text, index) => readField(text, index));
  if (fields.some((field) => field === null)) return null;
  const [second, minute, hour, day, month, weekday] = fields as [Field, Field, Field, Field, Field, Field];
  const time = timeInWords(second, minute, hour);
  const days = daysInWords(day, weekday);
  const months = month.all ? "" : ` in ${list(month.values.map((value) => MONTHS[value - 1]!))}`;
  if (days !== "" || months !== "") return `${time}${days === "" ? "" : ` ${days}`}${months}`;
  return /^at \d\d:/.test(time) ? `${time} every day` : time;
}

function timeInWords(second: Field, minute: Field, hour: Field): string {
  const onTheMinute = second.values.length === 1 && second.values[0] === 0;
  if (!onTheMinute) return secondsInWords(second, minute, hour);
  if (hour.all) return minutesInWords(minute);
  if (minute.values.length === 1) {
    const [past] = minute.values as [number];
    if (hour.step !== null) {
      const hours = `every ${hour.step} hours`;
      return past === 0 ? hours : `${hours} at ${past} minutes past`;
    }
    if (hour.values.length <= TIMES_MAX) return `at ${list(hour.values.map((each) => clock(each, past)))}`;
  }
  if (minute.values.length * hour.values.length <= TIMES_MAX) {
    const times = hour.values.flatMap((each) => minute.values.map((past) => clock(each, past)));
    return `at ${list(times)}`;
  }
  return `${minutesInWords(minute)} ${hoursInWords(hour, minute)}`;
}

function secondsInWords(second: Field, minute: Field, hour: Field): string {
  const each = second.all
    ? "every second"
    : second.step !== null
      ? `every ${second.step} seconds`
      : `at ${second.values.length === 1 ? "second" : "seconds"} ${list(second.values.map(String))} of`;
  if (minute.all && hour.all) return each.endsWith(" of") ? `${each} every minute` : each;
  const minutes = minute.all ? "every minute" : minutesInWords(minute);
  const hours = hour.all ? "" : ` ${hoursInWords(hour, minute)}`;
  return each.endsWith(" of") ? `${each} ${minutes}${hours}` : `${each}, ${minutes}${hours}`;
}

function minutesInWords(minute: Field): string {
  if (minute.all) return "every minute";
  if (minute.step !== null) return `every ${minute.step} minutes`;
  if (minute.values.length === 1)
    return minute.values[0] === 0
      ? "every hour"
      : `every hour at ${plural(minute.values[0]!, "minute")} past`;
  return `at ${list(minute.values.map(String))} minutes past every hour`;
}

function hoursInWords(hour: Field, minute: Field): string {
  if (hour.step !== null) return `of every ${nth(hour.step)} hour`;
  const [from, to] = hour.range ?? [];
  const last = minute.values.at(-1)!;
  if (from !== undefined && to !== undefined)
    return `from ${clock(from, minute.values[0]!)} to ${clock(to, last)}`;
  return `between ${list(hour.values.map((each) => `${clock(each, 0)} and ${clock(each, 59)}`))}`;
}

/** Given both, either will do: as in every cron. */
function daysInWords(day: Field, weekday: Field): string {
  const ofMonth = day.all ? "" : daysOfMonth(day);
  const ofWeek = weekday.all ? "" : daysOfWeek(weekday);
  return [ofMonth, ofWeek].filter((words) => words !== "").join(" and ");
}

function daysOfMonth({ values, step, special }: Field): string {
  if (step !== null) return `on every ${nth(step)} day of the month`;
  const last = special.length > 0 ? ["last day"] : [];
  return `on the ${list([...values.map(nth), ...last])} of the month`;
}

function daysOfWeek({ values, range, special }: Field): string {
  const words: string[] = [];
  if (range && range[0] === 1 && range[1] === 5) words.push("on weekdays");
  else if (values.length === 2 && values[0] === 0 && values[1] === 6) words.push("at weekends");
  else if (values.length > 0) words.push(`on ${list(values.map((value) => `${DAYS[value]!}s`))}`);
  for (const one of special) {
    const [, name, which] = /^(\w+?)(?:#(\d)|l)$/i.exec(one) as unknown as [string, string, string?];
    const at = valueOf(name, 5)! % 7;
    words.push(`on the ${which === undefined ? "last" : NTH[Number(which)]} ${DAYS[at]} of the month`);
  }
  return words.join(" and ");
}

function readField(text: string, index: number): Field | null {
  const [min, max] = RANGES[index]!;
  const values = new Set<number>();
  const special: string[] = [];
  for (const item of text.split(",")) {
    if (/^l$/i.test(item) || (index === 5 && /^\w+?(#\d|l)$/i.test(item))) {
      special.push(item);
      continue;
    }
    const [, from, to, step = "1"] = /^(\*|\w+)(?:-(\w+))?(?:\/(\d+))?$/.exec(item) ?? [];
    const low = from === "*" ? min : valueOf(from, index);
    const high = from === "*" ? max : to === undefined ? low : valueOf(to, index, true);
    if (low === null || high === null || Number(step) < 1) return null;
    for (let value = low; value <= high; value += Number(step)) values.add(index === 5 ? value % 7 : value);
  }
  const sorted = [...values].sort((a, b) => a - b);
  const step = /^\*\/(\d+)$/.exec(text)?.[1];
  const first = sorted[0];
  const last = sorted.at(-1);
  const unbroken = first !== undefined && last! - first === sorted.length - 1 && sorted.length > 1;
  return {
    all: special.length === 0 && sorted.length === max - min + 1,
    step: step === undefined || step === "1" ? null : Number(step),
    range: unbroken ? [first, last!] : null,
    values: sorted,
    special,
  };
}

function valueOf(text: string | undefined, index: number, endOfRange = false): number | null {
  if (text === undefined) return null;
  if (/^\d+$/.test(text)) return Number(text);
  const names = NAMES[index];
  const at = names?.findIndex((name) => name.slice(0, 3).toLowerCase() === text.toLowerCase()) ?? -1;
  if (at < 0) return null;
  if (index === 4) return at + 1;
  return at === 0 && endOfRange ? 7 : at;
}

function clock(hour: number, minute: number): string {
  return `${String(hour).padStart(2, "0")}:${String(minute).padStart(2, "0")}`;
}

function list(words: readonly string[]): string {
  if (words.length < 2) return words[0] ?? "";
  return `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
}

function nth(value: number): string {
  const ends = value % 100 >= 11 && value % 100 <= 13 ? "th" : (["th", "st", "nd", "rd"][value % 10] ?? "th");
  return `${value}${ends}`;
}

function plural(count: number, unit: string): string {
  return `${count} ${unit}${count === 1 ? "" : "s"}`;
}
