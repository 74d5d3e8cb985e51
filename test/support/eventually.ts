import assert from "node:assert/strict";
import { systemClock } from "../../src/platform/clock.ts";

const POLL_MS_FIRST = 1;
const POLL_MS_MAX = 20;

/** Looks again and again, on the real clock, until something is found that is not null, undefined or false. */
export async function eventually<T>(
  what: string,
  look: () => Promise<T | null | undefined | false> | T | null | undefined | false,
  withinMs = 30_000,
): Promise<T> {
  const until = systemClock.monotonic() + withinMs;
  for (let pauseMs = POLL_MS_FIRST; ; pauseMs = Math.min(2 * pauseMs, POLL_MS_MAX)) {
    const found = await look();
    if (found !== null && found !== undefined && found !== false) return found;
    assert.ok(systemClock.monotonic() < until, `waited ${withinMs} ms for ${what}`);
    await systemClock.sleep(pauseMs);
  }
}
