import { BatonError, hasCode } from "../../core/errors.ts";
import { Backoff, retry } from "../../platform/loop.ts";
import type { Platform } from "../../platform/platform.ts";

const FIRST_RETRY_MS = 50;
/** Longer, and workers wait for receipts long after the store is available again. */
const RETRY_MS_MAX = 1_000;

/** Repeats calls of the store while it is unavailable. An outage is logged once, however many calls it affects. */
export class StoreRetry {
  readonly #platform: Pick<Platform, "clock" | "log">;
  #failing = false;

  constructor(platform: Pick<Platform, "clock" | "log">) {
    this.#platform = platform;
  }

  /** Rejects with the last error when a retry is of no use, when `over` is aborted, or after `patienceMs`. */
  async call<Answer>(call: () => Promise<Answer>, over: AbortSignal, patienceMs = Infinity): Promise<Answer> {
    const { clock } = this.#platform;
    const giveUpAt = clock.monotonic() + patienceMs;
    const backoff = new Backoff(FIRST_RETRY_MS, RETRY_MS_MAX);
    const delayMs = (error: unknown): number | null => {
      const nextMs = backoff.next();
      if (!isTransient(error) || clock.monotonic() + nextMs > giveUpAt) return null;
      this.#log(error);
      return nextMs;
    };
    const answer = await retry(clock, call, delayMs, over);
    this.#log(null);
    return answer;
  }

  #log(error: unknown): void {
    const { log } = this.#platform;
    if (error !== null && !this.#failing)
      log.error({ err: error }, "the store does not take what owned jobs report; trying again");
    if (error === null && this.#failing) log.info({}, "the store takes what owned jobs report again");
    this.#failing = error !== null;
  }
}

/** Whether the same call may succeed later. A stopped store is not waited for. */
export function isTransient(error: unknown): boolean {
  return error instanceof BatonError && error.retryable && !hasCode(error, "STOPPED");
}
