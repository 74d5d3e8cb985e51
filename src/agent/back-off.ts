import { retryDelayMs, type RetryPolicy } from "../core/jobs/retry.ts";
import type { Clock } from "../platform/clock.ts";
import type { Random } from "../platform/random.ts";

/**
 * While nobody leads. The first tries come soon, because an election takes about a second; spread widely, because all agents
 * lose their leader in the same moment. A smaller cap, and some hundred agents keep the standbys busy with refusals.
 */
const POLICY: RetryPolicy = { firstDelayMs: 100, factor: 1.5, delayMsMax: 2_000, jitter: 0.5 };

export class BackOff {
  readonly #clock: Clock;
  readonly #random: Random;
  #failures = 0;

  constructor(options: { readonly clock: Clock; readonly random: Random }) {
    this.#clock = options.clock;
    this.#random = options.random;
  }

  /** Failures since the last success. */
  get failures(): number {
    return this.#failures;
  }

  succeeded(): void {
    this.#failures = 0;
  }

  /** After a failure: until the next try. */
  async failed(signal?: AbortSignal): Promise<void> {
    await this.#clock.sleep(retryDelayMs(++this.#failures, this.#random.chance(), POLICY), signal);
  }
}
