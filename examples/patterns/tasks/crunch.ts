/**
 * Counts primes the slow way: it blocks its thread, so it gets one of its own and the node stays responsive.
 *
 *     baton submit crunch '{"below":3000000}' --wait
 */

import type { TaskContext } from "batonjs/task";

/** Without it, a node would answer nobody and renew no lease until the last prime was found. */
export const isolation = "thread";
/** A thread can be stopped even if it never looks at its signal. */
export const timeout = "1m";

export default function crunch(
  payload: { readonly below?: number } | null,
  { progress }: TaskContext,
): { below: number; primes: number } {
  const below = payload?.below ?? 200_000;
  const step = Math.ceil(below / 10);
  let primes = 0;
  for (let n = 2; n < below; n++) {
    if (isPrime(n)) primes++;
    if (n % step === 0) progress((100 * n) / below);
  }
  return { below, primes };
}

function isPrime(n: number): boolean {
  for (let divisor = 2; divisor * divisor <= n; divisor++) if (n % divisor === 0) return false;
  return true;
}
