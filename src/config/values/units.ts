/** Parses and prints sizes (`512KiB`, `1MiB`, `10MB`). Durations are read in core/duration.ts. */

import { Mistake } from "../mistake.ts";

const DECIMAL_SIZES = { B: 1, kB: 1_000, KB: 1_000, MB: 1_000_000, GB: 1_000_000_000 };
const SIZES = { ...DECIMAL_SIZES, KiB: 1_024, MiB: 1_048_576, GiB: 1_073_741_824 };

const AMOUNT = /^(\d+(?:\.\d+)?)\s*([A-Za-z]+)$/;

export function parseSize(text: string): number {
  const written = text.trim();
  const [, number, unit = ""] = AMOUNT.exec(written) ?? [];
  if (!Object.hasOwn(SIZES, unit)) {
    const shown = /^\d+$/.test(written) ? written : JSON.stringify(text);
    throw new Mistake(`must be a size such as 512KiB, 1MiB or 10MB, not ${shown}`);
  }
  const bytes = Math.round(Number(number) * SIZES[unit as keyof typeof SIZES]);
  if (!Number.isSafeInteger(bytes)) throw new Mistake(`is too large: ${written}`);
  return bytes;
}

/** In the largest unit that leaves a whole number, so that reading it again gives the same. */
export function formatSize(bytes: number): string {
  const unit = (["GiB", "MiB", "KiB"] as const).find((each) => bytes !== 0 && bytes % SIZES[each] === 0);
  return unit === undefined ? `${bytes}B` : `${bytes / SIZES[unit]}${unit}`;
}
