/** A duration as people write it: a text with its unit, or a number of milliseconds. The same in code, flags and settings. */

const UNITS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

export type Duration = number | `${number}${keyof typeof UNITS}`;

/** In ms; throws a RangeError whose message continues after the name of the field. */
export function durationMs(value: unknown): number {
  if (typeof value === "number") {
    if (Number.isSafeInteger(value) && value >= 0) return value;
    throw new RangeError(`must be a duration such as "30s", or a whole number of milliseconds, not ${value}`);
  }
  if (typeof value !== "string")
    throw new RangeError(`must be a duration such as "30s", not ${kindOf(value)}`);
  const text = value.trim();
  const [, amount, unit = ""] = /^(\d+(?:\.\d+)?)\s*([A-Za-z]+)$/.exec(text) ?? [];
  if (!Object.hasOwn(UNITS, unit)) {
    // Half of its readers take a text without unit for seconds, the other half for milliseconds.
    throw new RangeError(
      /^\d+(?:\.\d+)?$/.test(text)
        ? `needs a unit: write ${text}s or ${text}ms, not ${text}`
        : `must be a duration such as 500ms, 30s, 5m, 1h or 7d, not ${JSON.stringify(value)}`,
    );
  }
  // Rounded, because 1.1 * 1000 is not a whole number in floating point.
  const ms = Math.round(Number(amount) * UNITS[unit as keyof typeof UNITS]);
  if (!Number.isSafeInteger(ms)) throw new RangeError(`is too long: ${text}`);
  return ms;
}

/** In the largest unit that leaves a whole number, so that reading it again gives the same. */
export function durationText(ms: number): string {
  const unit = (["d", "h", "m", "s"] as const).find((each) => ms !== 0 && ms % UNITS[each] === 0) ?? "ms";
  return `${ms / UNITS[unit]}${unit}`;
}

function kindOf(value: unknown): string {
  return value === null ? "null" : Array.isArray(value) ? "a list" : `a ${typeof value}`;
}
