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
