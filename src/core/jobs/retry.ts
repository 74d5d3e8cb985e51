/** When a failed job runs again: exponential backoff with jitter. */

export interface RetryPolicy {
  readonly delayMs: number;
  readonly factor: number;
  readonly maxDelayMs: number;
  /** Share by which a delay varies to both sides, so that jobs that failed together do not return together. */
  readonly jitter: number;
}

export const DEFAULT_RETRY: RetryPolicy = {
  delayMs: 1_000,
  factor: 2,
  maxDelayMs: 300_000,
  jitter: 0.25,
};

/** The delay before the next run after the n-th failure (n from 1). `chance` is a number in [0, 1). */
export function retryDelayMs(failures: number, chance: number, policy: RetryPolicy = DEFAULT_RETRY): number {
  // 2^1000 is already Infinity: the cap is taken before the jitter.
  const plain = Math.min(policy.delayMs * policy.factor ** (failures - 1), policy.maxDelayMs);
  const spread = 1 + policy.jitter * (2 * chance - 1);
  return Math.round(plain * spread);
}
