/** Numbers and times as people read them. Always in English: what is compared between two screens must look the same. */

import { count } from "../../../src/core/format-figures.ts";

export { count, percent, several as plural, short as compact } from "../../../src/core/format-figures.ts";

const TIME = { hour: "2-digit", minute: "2-digit", second: "2-digit" } as const;
const DATE = { weekday: "short", day: "numeric", month: "short", year: "numeric" } as const;
const ZONED = { ...DATE, ...TIME, timeZoneName: "short" } as const;

export const exact = formatter({ ...ZONED, fractionalSecondDigits: 3 });
/** For times that people have planned: nobody plans milliseconds. */
export const planned = formatter(ZONED);
export const clock = formatter(TIME);
export const dayAndClock = formatter({ day: "2-digit", month: "short", ...TIME });

function formatter(options: Intl.DateTimeFormatOptions): (at: number) => string {
  const format = new Intl.DateTimeFormat("en-GB", options);
  return (at) => format.format(at);
}

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const SPANS = [
  [24 * HOUR, "d"],
  [HOUR, "h"],
  [MINUTE, "m"],
  [SECOND, "s"],
] as const;

export function perSecond(value: number | null): string {
  if (value === null) return "–";
  if (value === 0) return "0";
  if (value < 0.05) return "<0.1";
  return value < 10 ? value.toFixed(1) : count(value);
}

export function duration(ms: number): string {
  if (ms < SECOND) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 10 * SECOND) return `${(ms / SECOND).toFixed(1)} s`;
  if (ms < MINUTE) return `${Math.floor(ms / SECOND)} s`;
  const at = SPANS.findIndex(([size]) => ms >= size);
  const [[size, unit], [small, next]] = [SPANS[at]!, SPANS[at + 1]!];
  const rest = Math.floor((ms % size) / small);
  return `${Math.floor(ms / size)}${unit}${rest === 0 ? "" : ` ${rest}${next}`}`;
}

/** One unit is enough to tell how long ago something was; what is to come is planned with two. */
export function ago(at: number, now: number): string {
  const ms = Math.abs(now - at);
  if (ms < SECOND) return "just now";
  if (at > now && ms >= HOUR) return `in ${duration(ms)}`;
  const [size, unit] = SPANS.find(([each]) => ms >= each)!;
  const text = `${unit === "s" ? Math.round(ms / size) : Math.floor(ms / size)}${unit}`;
  return at > now ? `in ${text}` : `${text} ago`;
}

/**
 * `node-a-01a1e20a-0914-7356-b76b-3822c1596aab` as `node-a…356…6aab`: the node it was born on, and enough to tell it apart. Ids of one batch
 * differ only in the middle, where it is counted.
 */
export function shortId(id: string): string {
  const found =
    /^(.+)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]([0-9a-f]{3})-[0-9a-f]{4}-[0-9a-f]{8}([0-9a-f]{4})$/.exec(id);
  return found ? `${found[1]}…${found[2]}…${found[3]}` : id;
}
