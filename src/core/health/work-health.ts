/**
 * Whether a node does its work: the rule behind `/workz`. A process may answer, and its store may answer, and still no
 * job is taken: a claim hangs, a loop has ended, or a duty of the leader never returns.
 *
 *   unhealthy   jobs wait that this node should have taken, or the node would not notice them
 *   healthy     the node takes jobs, or has none to take, or is not meant to take any
 */

/** Times are how long ago. */
export interface ClaimFacts {
  /** Since it began to want jobs and got no answer; 0 while it is full or was just answered. */
  readonly unansweredMs: number;
  readonly underWayMs: number | null;
  readonly failure: string | null;
  /** Since a claim last returned a job or the worker was full, or since the start. */
  readonly idleMs: number;
  readonly resultsFailingMs: number | null;
}

export interface WorkFacts {
  readonly state: "working" | "starting" | "draining";
  readonly slots: number;
  readonly running: number;
  readonly tasks: number;
  readonly claims: ClaimFacts;
  /** Due jobs that this node may run; null if that is not known. */
  readonly ready: number | null;
  /** The oldest that is certainly for this node. */
  readonly oldestMs: number | null;
  /** Duties of the leader that have been busy for too long. */
  readonly stuck: readonly { readonly duty: string; readonly busyMs: number }[];
}

export const WORK_CODES = [
  "working",
  "full",
  "no_worker",
  "starting",
  "draining",
  "duty_stuck",
  "results_refused",
  "claims_unanswered",
  "claims_failing",
  "not_taking",
] as const;

export interface WorkVerdict {
  readonly ok: boolean;
  readonly code: (typeof WORK_CODES)[number];
  readonly reason: string;
}

/** A worker with room asks at least once a second. Shorter, and a pause of the process counts as a fault. */
export const UNANSWERED_MS = 5_000;
/** Shorter, and a claim that met rows locked by others counts as a fault. */
export const UNTAKEN_MS = 15_000;

export function judgeWork(facts: WorkFacts): WorkVerdict {
  const { state, slots, running, tasks, claims, ready, oldestMs } = facts;
  const [stuck] = facts.stuck;
  if (stuck) {
    const reason = `the leader's duty "${stuck.duty}" has not come to an end for ${seconds(stuck.busyMs)}; whatever it waits for hangs`;
    return fault("duty_stuck", reason);
  }
  if (slots === 0 || tasks === 0) {
    const why = slots === 0 ? "its roles or worker.concurrency give it no place for jobs" : "it has no tasks";
    return fine("no_worker", `this node runs no jobs: ${why}`);
  }
  if (state === "draining") return fine("draining", "the node is being stopped and takes no jobs on purpose");
  if (state === "starting") return fine("starting", "the node has not begun to take jobs");
  if (claims.resultsFailingMs !== null && claims.resultsFailingMs >= UNANSWERED_MS) {
    const since = seconds(claims.resultsFailingMs);
    return fault("results_refused", `the store has not taken results for ${since}, so no jobs are taken`);
  }
  if (running >= slots) return fine("full", `all ${slots} places are in use`);
  if (claims.unansweredMs >= UNANSWERED_MS && ready !== 0) return fault(...unanswered(claims));
  const untaken = oldestMs !== null && oldestMs >= UNTAKEN_MS && claims.idleMs >= UNTAKEN_MS;
  if (untaken && ready !== null && ready > 0) {
    const reason = `${slots - running} of ${slots} places are free, and a job that this node could run has waited for ${seconds(oldestMs)}`;
    return fault("not_taking", reason);
  }
  const waiting = ready === null ? "" : ready === 0 ? "; nothing waits for it" : `; ${ready} jobs wait`;
  return fine("working", `${running} of ${slots} places are in use${waiting}`);
}

function unanswered({
  unansweredMs,
  underWayMs,
  failure,
}: ClaimFacts): [WorkVerdict["code"] & ("claims_failing" | "claims_unanswered"), string] {
  const since = seconds(unansweredMs);
  if (failure !== null)
    return ["claims_failing", `no claim of jobs has succeeded for ${since}; the last one failed: ${failure}`];
  if (underWayMs === null)
    return ["claims_unanswered", `there is room for jobs, and none has been asked for in ${since}`];
  return [
    "claims_unanswered",
    `a claim of jobs has not been answered for ${seconds(underWayMs)}; the store, or the way to it, hangs`,
  ];
}

function fine(code: WorkVerdict["code"], reason: string): WorkVerdict {
  return { ok: true, code, reason };
}

function fault(code: WorkVerdict["code"], reason: string): WorkVerdict {
  return { ok: false, code, reason };
}

function seconds(ms: number): string {
  return ms < 10_000 ? `${(ms / 1_000).toFixed(1)} s` : `${Math.round(ms / 1_000)} s`;
}
