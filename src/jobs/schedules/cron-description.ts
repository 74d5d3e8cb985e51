/** Describes the timing of a schedule in English, for people who do not read cron. */

import type Cronstrue from "cronstrue";
import type { Timing } from "../../core/schedules/schedule.ts";
import { loadPackage } from "../../platform/load-package.ts";
import { NICKNAMES } from "./cron-syntax.ts";

/** Of a timing that was accepted; one that was not is repeated as it is written. */
export function timingInWords(timing: Timing): string {
  if (timing.kind === "every") return `every ${lengthInWords(timing.everyMs)}`;
  const words = cronInWords(timing.expression);
  return words === null ? timing.expression : `${words}, ${zoneInWords(timing.zone)}`;
}

export function cronInWords(expression: string): string | null {
  const pattern = NICKNAMES[expression.trim().toLowerCase()] ?? expression.trim();
  try {
    const { toString: describe } = loadPackage<typeof Cronstrue>("cronstrue");
    const words = describe(pattern, { use24HourTimeFormat: true });
    const sentence = words.charAt(0).toLowerCase() + words.slice(1);
    return /^at \d\d:\d\d[^a-z]*(?:and \S+)?$/.test(sentence) ? `${sentence} every day` : sentence;
  } catch {
    return null;
  }
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
    if (count > 0) parts.push(`${count} ${unit}${unit === "ms" || count === 1 ? "" : "s"}`);
  }
  // "every hour", not "every 1 hour".
  return parts.length === 1 ? parts[0]!.replace(/^1 /, "") : parts.join(" ");
}
