import assert from "node:assert/strict";
import { systemClock } from "../../src/platform/clock.ts";

/** The limit is for what never happens: a busy machine may take seconds for each step. */
const PATIENCE_MS = 10_000;

/** Waits for a condition that can only be asked for again and again, and says what it waited for if it does not come. */
export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const giveUpAt = systemClock.monotonic() + PATIENCE_MS;
  while (!(await holds())) {
    assert.ok(systemClock.monotonic() < giveUpAt, `waited in vain: ${what}`);
    await systemClock.sleep(1);
  }
}
