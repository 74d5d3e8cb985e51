export interface WorkerSettings {
  readonly concurrency: number;
  /** Null for all queues. */
  readonly queues: ReadonlySet<string> | null;
  /** Never these. */
  readonly exceptQueues: ReadonlySet<string>;
  readonly leaseMs: number;
  readonly renewMs: number;
  readonly prefetchMax: number;
  /** How long an aborted handler may take to end before it is given up. */
  readonly abortGraceMs: number;
}

export interface DrainLimits {
  readonly timeoutMs: number;
  /** What handlers have for tidying up, of the above. */
  readonly cleanupMs: number;
  /** Fires: what runs is told to stop now. */
  readonly hurry?: AbortSignal;
  /** Fires: work is wanted again. Too late when those that run have been told to stop. */
  readonly callOff?: AbortSignal;
}
