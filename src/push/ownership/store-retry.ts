import { BatonError, hasCode } from "../../core/errors.ts";
import type { Clock } from "../../platform/clock.ts";
import { Backoff } from "../../platform/loop.ts";
import type { Log } from "../../platform/log.ts";

export interface StoreRetryOptions {
  readonly clock: Clock;
  readonly log: Log;
}

const FIRST_RETRY_MS = 50;
/** Longer, and workers wait for receipts long after the store is available again. */
const RETRY_MS_MAX = 1_000;

/** Repeats calls of the store while it is unavailable. An outage is logged once, however many calls it affects. */
export class StoreRetry {
  readonly #o: StoreRetryOptions;
  #failing = false;

  constructor(options: StoreRetryOptions) {
    this.#o = options;
  }

  /** Rejects with the last error when a retry is of no use, when `over` is aborted, or after `patienceMs`. */
  async call<Answer>(call: () => Promise<Answer>, over: AbortSignal, patienceMs = Infinity): Promise<Answer> {
    const { clock } = this.#o;
    const giveUpAt = clock.monotonic() + patienceMs;
    const backoff = new Backoff(FIRST_RETRY_MS, RETRY_MS_MAX);
    for (;;) {
      try {
        const answer = await call();
        this.#log(null);
        return answer;
      } catch (error) {
        const delayMs = backoff.next();
        if (!isTransient(error) || over.aborted || clock.monotonic() + delayMs > giveUpAt) throw error;
        this.#log(error);
        await clock.sleep(delayMs, over);
        if (over.aborted) throw error;
      }
    }
  }

  #log(error: unknown): void {
    const { log } = this.#o;
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
