/** Parses and prints durations: `500ms`, `30s`, `5m`, `1h`, `7d`. */

import { Mistake } from "../mistake.ts";

const UNITS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
type Unit = keyof typeof UNITS;

const DURATION = /^(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)$/;
const BARE_NUMBER = /^\d+(?:\.\d+)?$/;

/** In ms. A bare number is refused: half of its readers take it for seconds, the other half for milliseconds. */
export function parseDuration(text: string): number {
  const match = DURATION.exec(text.trim());
  if (!match) {
    if (BARE_NUMBER.test(text.trim())) {
      throw new Mistake(`needs a unit: write ${text.trim()}s or ${text.trim()}ms, not ${text.trim()}`);
    }
    throw new Mistake(`must be a duration such as 500ms, 30s, 5m, 1h or 7d, not ${JSON.stringify(text)}`);
  }
  // Rounded, because 1.1 * 1000 is not a whole number in floating point.
  const ms = Math.round(Number(match[1]) * UNITS[match[2] as Unit]);
  if (!Number.isSafeInteger(ms)) throw new Mistake(`is too long: ${text.trim()}`);
  return ms;
}

/** In the largest unit that leaves a whole number, so that reading it again gives the same. */
export function formatDuration(ms: number): string {
  const units = Object.entries(UNITS).reverse();
  const [unit, size] = units.find(([, size]) => ms !== 0 && ms % size === 0) ?? ["ms", 1];
  return `${ms / size}${unit}`;
}
