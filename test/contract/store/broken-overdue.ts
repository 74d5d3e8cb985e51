import type { JobId, LeaseId } from "../../../src/core/ids.ts";
import type { Job } from "../../../src/core/jobs/job.ts";
import type { Abandoned, JobStore, Recovered, Run, Settlement, Store } from "../../../src/store/store.ts";
import type { BrokenStore, BrokenStores, Replaced } from "./broken.ts";
import { runAgain } from "./broken-runs.ts";

const TAKEN_AWAY =
  "a run that goes on past its timeout and the grace is taken away, though its lease is renewed";

/** Recovers something else instead of what is overdue. */
function instead(of: (graceMs: number) => Abandoned): BrokenStore["replace"] {
  return ({ jobs }) => ({
    jobs: {
      recover: (which, budgets, fence) =>
        jobs.recover(which.by === "overdue" ? of(which.graceMs) : which, budgets, fence),
    },
  });
}

/** Shows jobs that were overdue in another way. */
function shown(as: (job: Job) => Job): BrokenStore["replace"] {
  return ({ jobs }): Replaced => {
    const overdue = new Set<JobId>();
    const recover: JobStore["recover"] = async (which, budgets, fence) => {
      const found = await jobs.recover(which, budgets, fence);
      if (which.by === "overdue") for (const { id } of found) overdue.add(id);
      return found;
    };
    return {
      jobs: {
        recover,
        async get(id) {
          const job = await jobs.get(id);
          return job && overdue.has(id) ? as(job) : job;
        },
      },
    };
  };
}

/** Submits other jobs than those it was given. */
function submitted(
  as: (job: { timeoutMs: number | null; maxAttempts: number }) => object,
): BrokenStore["replace"] {
  return ({ jobs }) => ({
    jobs: {
      submit: async (batch, author) =>
        jobs.submit(
          batch.map((job) => ({ ...job, ...as(job) })),
          author,
        ),
    },
  });
}

/** About runs that go on for too long. */
export const BROKEN_OVERDUE: BrokenStores = {
  "takes no run from a lease that is renewed": {
    caughtBy: TAKEN_AWAY,
    replace: instead(() => ({ by: "expiry" })),
  },

  "gives an overdue run no grace": {
    caughtBy: TAKEN_AWAY,
    replace: instead(() => ({ by: "overdue", graceMs: 0 })),
  },

  "gives an overdue run twice the grace": {
    caughtBy: TAKEN_AWAY,
    replace: instead((graceMs) => ({ by: "overdue", graceMs: 2 * graceMs })),
  },

  "charges an overdue run as a crash": {
    caughtBy: TAKEN_AWAY,
    replace: shown((job) => ({ ...job, failures: job.failures - 1, crashes: job.crashes + 1 })),
  },

  "lets an overdue job wait for the place that it had": {
    caughtBy: TAKEN_AWAY,
    replace: shown((job) => ({ ...job, runAt: job.createdAt })),
  },

  "says nothing of the timeout of an overdue job": {
    caughtBy: TAKEN_AWAY,
    replace: shown((job) => ({ ...job, error: null })),
  },

  "does not raise the epoch of an overdue job": {
    caughtBy: "whatever an overdue run still says is stale, even while its job waits",
    replace: ({ jobs }) => ({
      jobs: {
        async settle(batch) {
          const current: Settlement[] = [];
          for (const { run, outcome } of batch) {
            const late = (await jobs.get(run.id))?.error?.code === "TIMEOUT";
            current.push({ run: late ? await runAgain(jobs, run) : run, outcome });
          }
          return jobs.settle(current);
        },
      },
    }),
  },

  "ends the lease of an overdue run": {
    caughtBy: "only the overdue job is taken from its lease, which goes on with the others",
    replace({ jobs }: Store) {
      const leases = new Map<JobId, LeaseId>();
      const note = (runs: readonly Run[]): void => runs.forEach((run) => leases.set(run.id, run.lease));
      return {
        jobs: {
          async claim(request) {
            const claimed = await jobs.claim(request);
            note(claimed.jobs);
            return claimed;
          },
          async recover(which, budgets, fence): Promise<readonly Recovered[]> {
            const found = await jobs.recover(which, budgets, fence);
            if (which.by !== "overdue" || found.length === 0) return found;
            const incarnations = found.map(({ id }) => leases.get(id)!.split("/")[1]!);
            return [...found, ...(await jobs.recover({ by: "incarnations", incarnations }, budgets, fence))];
          },
        },
      };
    },
  },

  "takes jobs without a timeout for overdue": {
    caughtBy: "a job without a timeout is never overdue",
    replace: submitted(({ timeoutMs }) => ({ timeoutMs: timeoutMs ?? 1 })),
  },

  "counts the time of a run from the first one": {
    caughtBy: "the time counts from the start of the run, and not from an earlier one",
    replace({ jobs }) {
      const firstStarts = new Map<JobId, number>();
      return {
        jobs: {
          async claim(request) {
            const claimed = await jobs.claim(request);
            for (const { id } of claimed.jobs) {
              if (!firstStarts.has(id)) firstStarts.set(id, (await jobs.get(id))!.startedAt!);
            }
            return claimed;
          },
          async recover(which, budgets, fence) {
            if (which.by !== "overdue") return jobs.recover(which, budgets, fence);
            let earlierMs = 0;
            for (const [id, firstStart] of firstStarts) {
              earlierMs = Math.max(earlierMs, ((await jobs.get(id))?.startedAt ?? firstStart) - firstStart);
            }
            return jobs.recover({ ...which, graceMs: which.graceMs - earlierMs }, budgets, fence);
          },
        },
      };
    },
  },

  "tries an overdue job again without end": {
    caughtBy: "an overdue job has failed when it has no attempts left",
    replace: submitted(({ maxAttempts }) => ({ maxAttempts: maxAttempts + 1 })),
  },

  "tries an overdue job again that was to be cancelled": {
    caughtBy: "an overdue job that was to be cancelled is cancelled",
    replace: () => ({ jobs: { cancel: async () => ({ outcome: "requested" }) } }),
  },
};
