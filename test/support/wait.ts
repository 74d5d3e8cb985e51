import assert from "node:assert/strict";
import { systemClock } from "../../src/platform/clock.ts";

type Unless<T> = T | null | undefined | false;

const FIRST_PAUSE_MS = 2;
const PAUSE_MS_MAX = 20;

/**
 * The first answer that is not null or false. A condition in another process can only be asked for again and again. The limit is for what
 * never happens: a busy machine may take seconds for each step, and how fast a step is belongs to the benchmarks.
 */
export async function eventually<T>(
  what: string,
  look: () => Promise<Unless<T>> | Unless<T>,
  withinMs = 30_000,
): Promise<T> {
  const until = systemClock.monotonic() + withinMs;
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, PAUSE_MS_MAX)) {
    const found = await look();
    if (found !== null && found !== undefined && found !== false) return found;
    assert.ok(systemClock.monotonic() < until, `waited ${withinMs} ms for ${what}`);
    await systemClock.sleep(pauseMs);
  }
}
