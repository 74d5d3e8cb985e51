import type { JobId, LeaseId } from "../../../src/core/ids.ts";
import type { Abandoned, Run } from "../../../src/store/store.ts";
import {
  type BrokenStores,
  IN_HISTORIES,
  inJobs,
  recovers,
  type Replace,
  settlesLate,
  submits,
} from "./broken-row.ts";

const TAKEN_AWAY =
  "a run that goes on past its timeout and the grace is taken away, though its lease is renewed";

/** Recovers something else instead of what is overdue. */
function instead(of: (graceMs: number) => Abandoned): Replace {
  return recovers((which) => (which.by === "overdue" ? of(which.graceMs) : which));
}

/** About runs that go on for too long. */
export const BROKEN_OVERDUE: BrokenStores = {
  "takes no run from a lease that is renewed": [TAKEN_AWAY, instead(() => ({ by: "expiry" }))],
  "gives an overdue run no grace": [TAKEN_AWAY, instead(() => ({ by: "overdue", graceMs: 0 }))],
  "does not raise the epoch of an overdue job": [
    "whatever a run says that was taken away is stale, even while its job waits",
    settlesLate(({ error }) => error?.code === "TIMEOUT"),
  ],
  "ends the lease of an overdue run": [
    IN_HISTORIES,
    inJobs(({ jobs }) => {
      const leases = new Map<JobId, LeaseId>();
      const note = (runs: readonly Run[]): void => runs.forEach((run) => leases.set(run.id, run.lease));
      return {
        async claim(request) {
          const claimed = await jobs.claim(request);
          note(claimed.jobs);
          return claimed;
        },
        async recover(which, budgets, fence) {
          const found = await jobs.recover(which, budgets, fence);
          if (which.by !== "overdue" || found.length === 0) return found;
          const incarnations = found.map(({ id }) => leases.get(id)!.split("/")[1]!);
          return [...found, ...(await jobs.recover({ by: "incarnations", incarnations }, budgets, fence))];
        },
      };
    }),
  ],
  "takes jobs without a timeout for overdue": [
    IN_HISTORIES,
    submits((job) => ({ ...job, timeoutMs: job.timeoutMs ?? 1 })),
  ],
  "counts the time of a run from the first one": [
    "the time counts from the start of the run, and not from an earlier one",
    inJobs(({ jobs }) => {
      const firstStarts = new Map<JobId, number>();
      return {
        async claim(request) {
          const claimed = await jobs.claim(request);
          for (const { id } of claimed.jobs)
            if (!firstStarts.has(id)) firstStarts.set(id, (await jobs.get(id))!.startedAt!);
          return claimed;
        },
        async recover(which, budgets, fence) {
          if (which.by !== "overdue") return jobs.recover(which, budgets, fence);
          let earlierMs = 0;
          for (const [id, firstStart] of firstStarts)
            earlierMs = Math.max(earlierMs, ((await jobs.get(id))?.startedAt ?? firstStart) - firstStart);
          return jobs.recover({ ...which, graceMs: which.graceMs - earlierMs }, budgets, fence);
        },
      };
    }),
  ],
  "tries an overdue job again without end": [
    IN_HISTORIES,
    submits((job) => ({ ...job, maxAttempts: job.maxAttempts + 1 })),
  ],
  "tries an overdue job again that was to be cancelled": [
    "a job that was to be cancelled is cancelled when its run is taken away",
    inJobs(() => ({ cancel: async () => ({ outcome: "requested" }) })),
  ],
};
