/** Parses and prints sizes: `512KiB`, `1MiB`, `10MB`. */

import { Mistake } from "../mistake.ts";

const UNITS = {
  B: 1,
  kB: 1_000,
  KB: 1_000,
  MB: 1_000_000,
  GB: 1_000_000_000,
  KiB: 1_024,
  MiB: 1_048_576,
  GiB: 1_073_741_824,
} as const;
type Unit = keyof typeof UNITS;

const SIZE = /^(\d+(?:\.\d+)?)\s*([kKMG]?i?B)$/;

/** In bytes. */
export function parseSize(text: string): number {
  const match = SIZE.exec(text.trim());
  const unit = match && Object.hasOwn(UNITS, match[2]!) ? UNITS[match[2] as Unit] : null;
  if (!match || unit === null) {
    throw new Mistake(
      `must be a size such as 512KiB, 1MiB or 10MB, not ${/^\d+$/.test(text.trim()) ? text.trim() : JSON.stringify(text)}`,
    );
  }
  const bytes = Math.round(Number(match[1]) * unit);
  if (!Number.isSafeInteger(bytes)) throw new Mistake(`is too large: ${text.trim()}`);
  return bytes;
}

export function formatSize(bytes: number): string {
  for (const unit of ["GiB", "MiB", "KiB"] as const) {
    if (bytes !== 0 && bytes % UNITS[unit] === 0) return `${bytes / UNITS[unit]}${unit}`;
  }
  return `${bytes}B`;
}
