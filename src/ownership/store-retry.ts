import { BatonError, hasCode } from "../core/errors.ts";
import type { Clock } from "../platform/clock.ts";
import type { Log } from "../platform/log.ts";

export interface StoreRetryOptions {
  readonly clock: Clock;
  readonly log: Log;
}

const FIRST_RETRY_MS = 50;
/** Longer, and workers wait for receipts when the store has long been there again. */
const RETRY_MS_MAX = 1_000;

/** Calls of the store that are repeated while it is away. An outage is told once, however many calls meet it. */
export class StoreRetry {
  readonly #o: StoreRetryOptions;
  #failing = false;

  constructor(options: StoreRetryOptions) {
    this.#o = options;
  }

  /** Rejects with what the store said last: when trying again is of no use, when `over` fires, or after so long. */
  async until<Answer>(
    call: () => Promise<Answer>,
    over: AbortSignal,
    patienceMs = Infinity,
  ): Promise<Answer> {
    const { clock } = this.#o;
    const giveUpAt = clock.monotonic() + patienceMs;
    for (let delayMs = FIRST_RETRY_MS; ; delayMs = Math.min(delayMs * 2, RETRY_MS_MAX)) {
      try {
        const answer = await call();
        this.#tell(null);
        return answer;
      } catch (error) {
        if (!passes(error) || over.aborted || clock.monotonic() + delayMs > giveUpAt) throw error;
        this.#tell(error);
        await clock.sleep(delayMs, over);
        if (over.aborted) throw error;
      }
    }
  }

  #tell(error: unknown): void {
    const { log } = this.#o;
    if (error !== null && !this.#failing)
      log.error({ err: error }, "the store does not take what owned jobs report; trying again");
    if (error === null && this.#failing) log.info({}, "the store takes what owned jobs report again");
    this.#failing = error !== null;
  }
}

/** Whether the same call may succeed later. A store that was stopped is not waited for. */
export function passes(error: unknown): boolean {
  return error instanceof BatonError && error.retryable && !hasCode(error, "STOPPED");
}
