/** Quantiles of a small number of measurements: the value that a given share of them does not exceed. */

export interface Quantiles {
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}

export function quantiles(values: readonly number[]): Quantiles | null {
  if (values.length === 0) return null;
  const sorted = Float64Array.from(values).sort();
  const at = (share: number): number => sorted[Math.ceil(share * sorted.length) - 1]!;
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99) };
}

export interface Measured {
  readonly of: number;
  readonly quantiles: Quantiles | null;
}

/** Of several nodes, weighted by the number of their measurements: an approximation for people. */
export function mixedQuantiles(parts: readonly Measured[]): Quantiles | null {
  const told = parts.filter((part) => part.quantiles !== null && part.of > 0);
  const all = told.reduce((sum, { of }) => sum + of, 0);
  if (all === 0) return null;
  const mean = (pick: (of: Quantiles) => number): number =>
    Math.round(told.reduce((sum, part) => sum + pick(part.quantiles!) * part.of, 0) / all);
  return { p50: mean(({ p50 }) => p50), p95: mean(({ p95 }) => p95), p99: mean(({ p99 }) => p99) };
}
