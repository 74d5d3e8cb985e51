/** Adds numbers up, and formats them for columns. */

/** What is not known counts as nothing. */
export function sumOf<Item>(items: readonly Item[], pick: (item: Item) => number | null | undefined): number {
  return items.reduce((sum, item) => sum + (pick(item) ?? 0), 0);
}

export function rounded(value: number, digits = 1): number {
  return Math.round(value * 10 ** digits) / 10 ** digits;
}

/** `12,345` */
export function count(value: number): string {
  return String(Math.round(value)).replaceAll(/\B(?=(?:\d{3})+$)/g, ",");
}

/** `12.3k`: at most five characters. */
export function short(value: number): string {
  if (value < 10_000) return String(Math.round(value));
  const [size, unit] = value < 1e6 ? [1e3, "k"] : value < 1e9 ? [1e6, "M"] : [1e9, "G"];
  const scaled = value / size;
  return `${scaled < 100 ? Math.floor(scaled * 10) / 10 : Math.floor(scaled)}${unit}`;
}

/** `0.3/s`, `120/s`; a dash if it is not known. */
export function perSecond(value: number | null | undefined): string {
  if (value === null || value === undefined) return "-";
  return `${value === 0 ? "0" : value < 10 ? value.toFixed(1) : short(value)}/s`;
}

const SPANS = [
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "m"],
  [1_000, "s"],
] as const;

/** `3ms`, `1.4s`, `12s`, `3m`, `2h`, `5d`: one unit is enough to compare rows. */
export function span(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return "-";
  if (ms < 1_000) return `${ms < 10 && ms > 0 && !Number.isInteger(ms) ? ms.toFixed(1) : Math.round(ms)}ms`;
  if (ms < 10_000) return `${(ms / 1_000).toFixed(1)}s`;
  const [size, unit] = SPANS.find(([each]) => ms >= each)!;
  return `${Math.trunc(ms / size)}${unit}`;
}

/** `3m ago`, `in 2h` */
export function ago(now: number, instant: string | null | undefined): string | null {
  if (!instant) return null;
  const deltaMs = now - Date.parse(instant);
  const [size, unit] = SPANS.find(([each]) => Math.abs(deltaMs) >= each) ?? SPANS.at(-1)!;
  const text = `${Math.trunc(Math.abs(deltaMs) / size)}${unit}`;
  return deltaMs >= 0 ? `${text} ago` : `in ${text}`;
}

/** `2026-01-01T00:00:00.000Z (1h ago)` */
export function timeAndAge(now: number, instant: string | null): string | null {
  return instant === null ? null : `${instant} (${ago(now, instant)})`;
}

/** How long ago, in the units of `span`. */
export function since(now: number, instant: string | null | undefined): string | null {
  return instant ? span(Math.max(0, now - Date.parse(instant))) : null;
}

export function percent(share: number): string {
  return `${Math.round(share * 100)}%`;
}

/** `1 job`, `3 jobs`, `12,000 jobs` */
export function several(amount: number, one: string, many = `${one}s`): string {
  return `${count(amount)} ${amount === 1 ? one : many}`;
}

const SIZES = ["B", "KiB", "MiB", "GiB", "TiB"] as const;

/** `3.4 GiB` */
export function bytes(amount: number): string {
  let [value, unit] = [amount, 0];
  while (value >= 1_024 && unit < SIZES.length - 1) {
    value /= 1_024;
    unit++;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${SIZES[unit]}`;
}
