/** The four durations of an election, and the relations between them. */

import { BatonError } from "../core/errors.ts";

export interface ElectorSettings {
  /** How long the lock grants a term. A dead leader is replaced after this, if no hint comes first. */
  readonly leaseMs: number;
  readonly renewMs: number;
  /** The part of the lease that is not used, see core/leadership/trust-window.ts. */
  readonly marginMs: number;
  /** How often a standby tries, spread by a quarter to both sides. */
  readonly retryMs: number;
}

export function checkElectorSettings(settings: ElectorSettings): void {
  for (const field of ["leaseMs", "renewMs", "marginMs", "retryMs"] as const) {
    const value = settings[field];
    if (!Number.isFinite(value) || value <= 0) {
      throw new BatonError("BAD_CONFIG", `${field} must be a number of ms above 0, not ${value}`, { field });
    }
  }
  const { leaseMs, renewMs, marginMs } = settings;
  if (leaseMs > renewMs + marginMs) return;
  throw new BatonError(
    "BAD_CONFIG",
    `leaseMs (${leaseMs}) must be above renewMs + marginMs (${renewMs} + ${marginMs}): otherwise each term runs out before its first renewal; raise leaseMs or lower renewMs`,
    { field: "leaseMs" },
  );
}
