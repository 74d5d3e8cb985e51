import type { LeaseLock } from "../../src/leadership/coordination.ts";
import type { LeaderRole } from "../../src/core/leadership/term.ts";

export const ROLE: LeaderRole = "scheduler";

export interface LockWorld {
  /** The lock of `ROLE`, never used before. */
  readonly lock: LeaseLock;
  /** As short as the backend's clock allows; the proofs measure time in it. */
  readonly ttlMs: number;
  /** How often 50 candidates race. */
  readonly rounds: number;
  /** Lets time pass for the backend. */
  readonly elapse: (ms: number) => Promise<void>;
  /** Another lock on the same backend, as after a restart of the process. */
  readonly reopen: () => Promise<LeaseLock>;
  readonly close: () => Promise<void>;
}

export type OpenLock = () => Promise<LockWorld>;
