import { FUNCTIONS_QUEUE } from "../../core/jobs/job.ts";
import type { NodeRole, ServedQueues } from "../../core/node.ts";

export interface WorkerSettings {
  readonly concurrency: number;
  /** Null for all queues. */
  readonly queues: ReadonlySet<string> | null;
  readonly exceptQueues: ReadonlySet<string>;
  readonly leaseMs: number;
  readonly renewMs: number;
  readonly prefetchMax: number;
  /** How long an aborted handler may take to end before it is given up. */
  readonly abortGraceMs: number;
}

/** Which queues a node works on: `function` is for callers who wait, `worker` for everything else. */
export function queuesOf(
  roles: ReadonlySet<NodeRole>,
  chosen: readonly string[],
): { queues: ReadonlySet<string> | null; exceptQueues: ReadonlySet<string> } {
  if (!roles.has("worker")) return { queues: new Set([FUNCTIONS_QUEUE]), exceptQueues: new Set() };
  if (!roles.has("function")) {
    return { queues: chosen.length > 0 ? new Set(chosen) : null, exceptQueues: new Set([FUNCTIONS_QUEUE]) };
  }
  const queues = chosen.length > 0 ? new Set([...chosen, FUNCTIONS_QUEUE]) : null;
  return { queues, exceptQueues: new Set() };
}

/** As it is reported to other nodes. */
export function servedQueues({ queues, exceptQueues }: ReturnType<typeof queuesOf>): ServedQueues {
  return { queues: queues && [...queues], except: [...exceptQueues] };
}

export interface DrainLimits {
  readonly timeoutMs: number;
  /** What handlers have for tidying up, of the above. */
  readonly cleanupMs: number;
  /** Fires: what runs is to stop now. */
  readonly hurry?: AbortSignal;
  /** Fires: work is wanted again. Too late when what runs has been aborted. */
  readonly callOff?: AbortSignal;
}
