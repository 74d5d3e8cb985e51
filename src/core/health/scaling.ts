/**
 * How many workers there should be, for autoscalers: the rule behind `GET /scaling`.
 *
 *   jobs in hand     = running + ready
 *   slots needed     = jobs in hand x run time / target, so that all of it is done within the target;
 *                      never fewer than run now, and never more than there are jobs
 *   workers needed   = slots needed / slots of a worker, rounded up
 *
 * The result depends only on the arguments: all nodes give the same answer at the same time, and no node has to
 * remember earlier answers. To ignore noise, the answer is the current number of workers while that is at most 30 % too
 * high. A number that is too low is always reported. After an autoscaler has followed the answer, the answer stays the
 * same.
 */

export interface ScalingFacts {
  /** Current workers: nodes and agents that take jobs of these queues. */
  readonly workers: number;
  readonly slots: number;
  readonly running: number;
  readonly ready: number;
  readonly oldestMs: number | null;
  /** Median of the jobs that ended lately; null if none did. */
  readonly runMs: number | null;
}

export interface ScalingOptions {
  readonly targetMs: number;
  readonly min: number;
  readonly max: number;
  /** Assumed while there is no worker. */
  readonly slotsPerWorker: number;
}

export interface ScalingAnswer {
  readonly workers: number;
  readonly reason: string;
}

/** Share of surplus workers that is kept. With less, a queue that fluctuates makes workers come and go. */
export const SURPLUS_KEPT = 0.3;
/** Largest factor of growth while run times are unknown or jobs are late all the same. */
const GROWTH_MAX = 2;
/** Below this share of busy slots, something else makes the jobs wait. */
const BUSY_SHARE = 0.8;

export function desiredWorkers(facts: ScalingFacts, options: ScalingOptions): ScalingAnswer {
  const { workers, slots, ready, running } = facts;
  const each = workers > 0 && slots > 0 ? slots / workers : options.slotsPerWorker;
  const { places, why } = placesNeeded(facts, options, each);
  const needed = Math.max(0, Math.ceil(places / each - 1e-9));
  const inHand = `${running} running, ${ready} waiting`;
  const bounded = Math.min(Math.max(needed, options.min), options.max);
  if (bounded !== needed) {
    const bound = needed < options.min ? `the least is ${options.min}` : `the most is ${options.max}`;
    return { workers: bounded, reason: `${inHand}: ${why}; ${bound}` };
  }
  const kept = workers <= options.max && workers >= options.min;
  if (kept && needed < workers && needed > 0 && needed >= workers * (1 - SURPLUS_KEPT)) {
    return { workers, reason: `${inHand}: ${needed} would do, and ${workers} are kept` };
  }
  return { workers: needed, reason: `${inHand}: ${why}` };
}

function placesNeeded(
  { slots, running, ready, oldestMs, runMs }: ScalingFacts,
  { targetMs }: ScalingOptions,
  each: number,
): { readonly places: number; readonly why: string } {
  if (ready === 0) return { places: running, why: "nothing waits" };
  const grown = Math.max(slots, each) * GROWTH_MAX;
  if (runMs === null) {
    const places = Math.min(running + ready, Math.max(grown, running));
    return { places, why: "how long jobs run is not known yet" };
  }
  const inTime = ((running + ready) * runMs) / targetMs;
  const late = oldestMs !== null && oldestMs > targetMs && running >= slots * BUSY_SHARE;
  // The median is not everything: if the oldest job is late and all slots are busy, more are needed than it says.
  const urged = late ? Math.min(slots * (oldestMs / targetMs), grown) : 0;
  const places = Math.min(Math.max(inTime, urged, running, 1), running + ready);
  const seconds = (ms: number): string => `${Math.round(ms / 100) / 10} s`;
  return late && urged > inTime
    ? { places, why: `the oldest has waited ${seconds(oldestMs)}, longer than ${seconds(targetMs)}` }
    : { places, why: `at ${seconds(runMs)} a job, to be done within ${seconds(targetMs)}` };
}
