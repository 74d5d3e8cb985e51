import type { JobId } from "../../../src/core/ids.ts";
import type { JobStore, Run, Settlement, Store, Verdict } from "../../../src/store/store.ts";
import { LOG_LINES_MAX } from "../../../src/store/store.ts";
import { AUTHOR } from "../../support/store-world.ts";
import type { BrokenStores } from "./broken.ts";

/** Remembers the last run of every job: a careless keeper that looks at the id alone. */
function lastRuns({ jobs }: Store): { claim: JobStore["claim"]; of: (run: Run) => Run } {
  const runs = new Map<JobId, Run>();
  return {
    async claim(request) {
      const claimed = await jobs.claim(request);
      for (const run of claimed.jobs) runs.set(run.id, run);
      return claimed;
    },
    of: (run) => runs.get(run.id) ?? run,
  };
}

/** About runs: results, logs, progress and leases. */
export const BROKEN_RUNS: BrokenStores = {
  "accepts results under an old epoch": {
    caughtBy: "a result under an old epoch is stale and changes nothing",
    replace(whole) {
      const { claim, of } = lastRuns(whole);
      const settle: JobStore["settle"] = (batch) =>
        whole.jobs.settle(batch.map(({ run, outcome }) => ({ run: of(run), outcome })));
      return { jobs: { claim, settle } };
    },
  },

  "accepts results under any lease": {
    caughtBy: "a result under a lease that does not hold the job is stale",
    replace(whole) {
      const { claim, of } = lastRuns(whole);
      const settle: JobStore["settle"] = (batch) =>
        whole.jobs.settle(
          batch.map(({ run, outcome }) => ({ run: { ...run, lease: of(run).lease }, outcome })),
        );
      return { jobs: { claim, settle } };
    },
  },

  "accepts logs under an old epoch": {
    caughtBy: "a stale run may not log",
    replace(whole) {
      const { claim, of } = lastRuns(whole);
      const report: JobStore["report"] = (batch) =>
        whole.jobs.report(batch.map((one) => (one.progress ? one : { ...one, run: of(one.run) })));
      return { jobs: { claim, report } };
    },
  },

  "accepts progress under an old epoch": {
    caughtBy: "a stale run may not report progress",
    replace(whole) {
      const { claim, of } = lastRuns(whole);
      const report: JobStore["report"] = (batch) =>
        whole.jobs.report(batch.map((one) => (one.progress ? { ...one, run: of(one.run) } : one)));
      return { jobs: { claim, report } };
    },
  },

  "does not raise the epoch when it recovers a job": {
    caughtBy: "a dead worker's late result is stale, even while the job waits",
    replace({ jobs }) {
      // The run is given out again behind its back, so that the dead worker's epoch is as good as the newest.
      const settle = async (batch: readonly Settlement[]) => {
        const current: Settlement[] = [];
        for (const { run, outcome } of batch) {
          const job = await jobs.get(run.id);
          const recovered = job?.status === "queued" && job.crashes > 0 && job.jobEpoch === run.jobEpoch + 1;
          const again = recovered
            ? await jobs.claim({
                author: AUTHOR,
                worker: "late",
                lease: run.lease,
                leaseMs: 1_000,
                limit: 1,
                tasks: new Set([job.task]),
                queues: new Set([job.queue]),
                suspect: true,
              })
            : null;
          current.push({ run: again?.jobs[0] ?? run, outcome });
        }
        return jobs.settle(current);
      };
      return { jobs: { settle } };
    },
  },

  "lets the last of several results win": {
    caughtBy: "the first answer stands when a run is settled in another way",
    replace({ jobs }) {
      const results = new Map<JobId, string>();
      return {
        jobs: {
          settle(batch) {
            for (const { run, outcome } of batch) {
              if (outcome.kind === "completed") results.set(run.id, outcome.result);
            }
            return jobs.settle(batch);
          },
          async result(id) {
            return (await jobs.result(id)) === null ? null : results.get(id)!;
          },
        },
      };
    },
  },

  "settles a batch run by run": {
    caughtBy: "a batch of results that cannot be applied as a whole changes nothing",
    replace: ({ jobs }) => ({
      jobs: {
        async settle(batch) {
          const verdicts: Verdict[] = [];
          for (const one of batch) verdicts.push(...(await jobs.settle([one])));
          return verdicts;
        },
      },
    }),
  },

  "counts an attempt for a released job": {
    caughtBy: "a released job is as if it had never been claimed",
    replace({ jobs }) {
      const released = new Map<JobId, number>();
      return {
        jobs: {
          async settle(batch) {
            const verdicts = await jobs.settle(batch);
            for (const [index, { run, outcome }] of batch.entries()) {
              if (outcome.kind !== "released" || verdicts[index] !== "accepted") continue;
              released.set(run.id, (released.get(run.id) ?? 0) + 1);
            }
            return verdicts;
          },
          async get(id) {
            const job = await jobs.get(id);
            return job && { ...job, attempts: job.attempts + (released.get(id) ?? 0) };
          },
        },
      };
    },
  },

  "charges every final failure to the same budget": {
    caughtBy: "a final failure is charged to the budget that it names",
    replace: ({ jobs }) => ({
      jobs: {
        settle: (batch) =>
          jobs.settle(
            batch.map(({ run, outcome }) => ({
              run,
              outcome: outcome.kind === "failed" ? { ...outcome, spends: "failure" } : outcome,
            })),
          ),
      },
    }),
  },

  "numbers the log lines of each run from 1": {
    caughtBy: "log numbers have no gaps across reports and runs of a job",
    replace: ({ jobs }) => ({
      jobs: {
        async logs(id, after, limit) {
          const firsts = new Map<number, number>();
          for (const { seq, jobEpoch } of await jobs.logs(id, 0, LOG_LINES_MAX)) {
            if (!firsts.has(jobEpoch)) firsts.set(jobEpoch, seq);
          }
          const lines = await jobs.logs(id, after, limit);
          return lines.map((line) => ({ ...line, seq: line.seq - firsts.get(line.jobEpoch)! + 1 }));
        },
      },
    }),
  },

  "says that a lease is held when it has run out": {
    caughtBy: "a lease that has run out is not held and not revived by a renewal",
    replace: ({ jobs }) => ({
      jobs: {
        renew: async (lease, ttlMs) => ({ ...(await jobs.renew(lease, ttlMs)), held: true }),
      },
    }),
  },

  "never lets a lease run out": {
    caughtBy: "a job whose lease has run out returns to its place in line",
    replace: ({ jobs }) => ({
      jobs: { claim: (request) => jobs.claim({ ...request, leaseMs: Number.MAX_SAFE_INTEGER }) },
    }),
  },

  "forgets to prolong a lease": {
    caughtBy: "a renewed lease goes on, and every renewal counts from itself",
    replace: ({ jobs }) => ({ jobs: { renew: (lease) => jobs.renew(lease, 1) } }),
  },

  "forgets the wish to cancel a running job": {
    caughtBy: "cancelling a running job is a wish that its claimant learns when it renews",
    replace: ({ jobs }) => ({
      jobs: {
        async cancel(id, reason) {
          const running = (await jobs.get(id))?.status === "processing";
          return running ? { outcome: "requested" } : jobs.cancel(id, reason);
        },
      },
    }),
  },
};
