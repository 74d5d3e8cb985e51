/**
 * Time zones from the runtime's own database (Intl): the offset at an instant, and the instants at which it changes. A lookup costs about
 * 3 µs, so offsets are cached by day. No zone changes its offset twice within one day of UTC.
 */

import { nearest } from "../../core/errors.ts";

const DAY_MS = 86_400_000;
/** Eleven years of days. Beyond that the memory is emptied and fills again. */
const DAYS_KEPT_MAX = 4_096;

export class TimeZone {
  readonly #format: Intl.DateTimeFormat;
  readonly #startOffsets = new Map<number, number>();
  readonly #changes = new Map<number, number>();

  constructor(name: string) {
    this.#format = new Intl.DateTimeFormat("en-US", { timeZone: name, timeZoneName: "longOffset" });
  }

  /** Local time minus UTC, in ms. */
  offsetAt(instant: number): number {
    const day = Math.floor(instant / DAY_MS);
    const before = this.#startOffset(day);
    if (before === this.#startOffset(day + 1)) return before;
    return instant < this.#changeIn(day) ? before : this.#startOffset(day + 1);
  }

  /** The first instant in (after, until] from which another offset holds; null if there is none. */
  changeWithin(after: number, until: number): number | null {
    for (let day = Math.floor(after / DAY_MS); day * DAY_MS < until; day++) {
      if (this.#startOffset(day) === this.#startOffset(day + 1)) continue;
      const change = this.#changeIn(day);
      if (change > after && change <= until) return change;
    }
    return null;
  }

  #startOffset(day: number): number {
    let offset = this.#startOffsets.get(day);
    if (offset === undefined) {
      if (this.#startOffsets.size >= DAYS_KEPT_MAX) this.#startOffsets.clear();
      this.#startOffsets.set(day, (offset = this.#lookUp(day * DAY_MS)));
    }
    return offset;
  }

  #changeIn(day: number): number {
    let change = this.#changes.get(day);
    if (change === undefined) {
      const before = this.#startOffset(day);
      let low = day * DAY_MS;
      let high = low + DAY_MS;
      while (high - low > 1_000) {
        const middle = low + Math.floor((high - low) / 2_000) * 1_000;
        if (this.#lookUp(middle) === before) low = middle;
        else high = middle;
      }
      this.#changes.set(day, (change = high));
    }
    return change;
  }

  #lookUp(instant: number): number {
    const text = this.#format.formatToParts(instant).find((part) => part.type === "timeZoneName")!.value;
    const [, sign, hours, minutes, seconds] = /^GMT(?:([+-])(\d+):(\d+)(?::(\d+))?)?$/.exec(text)!;
    if (sign === undefined) return 0;
    const offset = (Number(hours) * 3_600 + Number(minutes) * 60 + Number(seconds ?? 0)) * 1_000;
    return sign === "-" ? -offset : offset;
  }
}

const zones = new Map<string, TimeZone>();

/**
 * Only `Area/City` names, UTC and GMT: the runtime also takes abbreviations, but reads EST as Panama and IST as India, and offsets such as
 * +02:00 know no daylight saving. Null for others.
 */
export function findZone(name: string): TimeZone | null {
  if (!/^(?:UTC|GMT|[A-Za-z_]+\/[A-Za-z0-9_+/-]+)$/.test(name)) return null;
  let zone = zones.get(name);
  try {
    if (!zone) zones.set(name, (zone = new TimeZone(name)));
    return zone;
  } catch {
    return null;
  }
}

export function suggestZone(name: string): string | null {
  const known = [...Intl.supportedValuesOf("timeZone"), "UTC"];
  const city = `/${name.split("/").at(-1)!.trim().replaceAll(" ", "_").toLowerCase()}`;
  return known.find((zone) => zone.toLowerCase().endsWith(city)) ?? nearest(name, known);
}
