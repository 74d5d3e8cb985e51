/** Parses and prints durations (`500ms`, `30s`, `5m`, `1h`, `7d`) and sizes (`512KiB`, `1MiB`, `10MB`). */

import { Mistake } from "../mistake.ts";

const DURATIONS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const DECIMAL_SIZES = { B: 1, kB: 1_000, KB: 1_000, MB: 1_000_000, GB: 1_000_000_000 };
const SIZES = { ...DECIMAL_SIZES, KiB: 1_024, MiB: 1_048_576, GiB: 1_073_741_824 };

const AMOUNT = /^(\d+(?:\.\d+)?)\s*([A-Za-z]+)$/;

/** In ms. A bare number is refused: half of its readers take it for seconds, the other half for milliseconds. */
export function parseDuration(text: string): number {
  const bare = text.trim();
  return amount(text, DURATIONS, "is too long", () =>
    /^\d+(?:\.\d+)?$/.test(bare)
      ? `needs a unit: write ${bare}s or ${bare}ms, not ${bare}`
      : `must be a duration such as 500ms, 30s, 5m, 1h or 7d, not ${JSON.stringify(text)}`,
  );
}

export function parseSize(text: string): number {
  const shown = /^\d+$/.test(text.trim()) ? text.trim() : JSON.stringify(text);
  return amount(
    text,
    SIZES,
    "is too large",
    () => `must be a size such as 512KiB, 1MiB or 10MB, not ${shown}`,
  );
}

function amount(
  text: string,
  units: Readonly<Record<string, number>>,
  tooMuch: string,
  refusal: () => string,
): number {
  const [, number, unit = ""] = AMOUNT.exec(text.trim()) ?? [];
  if (!Object.hasOwn(units, unit)) throw new Mistake(refusal());
  // Rounded, because 1.1 * 1000 is not a whole number in floating point.
  const value = Math.round(Number(number) * units[unit]!);
  if (!Number.isSafeInteger(value)) throw new Mistake(`${tooMuch}: ${text.trim()}`);
  return value;
}

export function formatDuration(ms: number): string {
  return inLargest(ms, ["d", "h", "m", "s"], DURATIONS) ?? `${ms}ms`;
}

export function formatSize(bytes: number): string {
  return inLargest(bytes, ["GiB", "MiB", "KiB"], SIZES) ?? `${bytes}B`;
}

/** In the largest unit that leaves a whole number, so that reading it again gives the same. */
function inLargest<Unit extends string>(
  value: number,
  largestFirst: readonly Unit[],
  sizes: Readonly<Record<Unit, number>>,
): string | null {
  const unit = largestFirst.find((each) => value !== 0 && value % sizes[each] === 0);
  return unit === undefined ? null : `${value / sizes[unit]}${unit}`;
}
