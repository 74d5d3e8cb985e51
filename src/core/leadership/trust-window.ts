/**
 * How long a leader may trust its own term.
 *
 *     renewal sent          acknowledged                 trusted until        lease runs out
 *          |-------------------|------------------------------|--------margin-------|
 *          '-- counted from here, on the leader's own monotonic clock
 *
 * The lock counts the lease from the moment it *applied* the renewal, which is never before it was sent. So `sent +
 * lease - margin` has passed before the lock can be granted to another node, however slow the answer was. The margin
 * covers clocks that run at different rates: 25 % of the lease tolerates a rate of 1.33.
 */

export function trustedUntil(
  sentAtMono: number,
  { leaseMs, marginMs }: { readonly leaseMs: number; readonly marginMs: number },
): number {
  return sentAtMono + leaseMs - marginMs;
}

/**
 * A suspended machine's monotonic clock stands still while the world goes on. If wall time moved on by more than
 * half a lease beyond monotonic time, the machine slept and its term must be confirmed anew. A wall clock that was
 * set by hand looks the same; the price of the mistake is one extra confirmation.
 */
export function slept(wallDeltaMs: number, monoDeltaMs: number, leaseMs: number): boolean {
  return wallDeltaMs - monoDeltaMs > leaseMs / 2;
}
