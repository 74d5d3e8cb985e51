import type { JobId } from "../../../src/core/ids.ts";
import {
  type JobStore,
  LOG_LINES_MAX,
  type Run,
  type Settlement,
  type Store,
  type Verdict,
} from "../../../src/store/store.ts";
import { AUTHOR } from "../../support/store-world.ts";
import type { BrokenStores, RunParts } from "./broken.ts";

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

/** Gives a job that was taken away out again, behind its back: so its old run is as good as the newest. */
export async function runAgain(jobs: JobStore, run: Run): Promise<Run> {
  const job = await jobs.get(run.id);
  if (job?.status !== "queued" || job.jobEpoch !== run.jobEpoch + 1) return run;
  const claimed = await jobs.claim({
    author: AUTHOR,
    worker: "late",
    lease: run.lease,
    leaseMs: 1_000,
    limit: 1,
    tasks: new Set([job.task]),
    queues: new Set([job.queue]),
    exceptQueues: new Set(),
    opens: true,
    suspect: true,
  });
  return claimed.jobs[0] ?? run;
}

/** About runs: results, logs, progress and leases. */
export const BROKEN_RUNS: BrokenStores = {
  "accepts results under an old epoch": {
    caughtBy: "a result under an old epoch is stale and changes nothing",
    replace(whole) {
      const { claim, of } = lastRuns(whole);
      const settle: RunParts["settle"] = (batch) =>
        whole.jobs.settle(batch.map(({ run, outcome }) => ({ run: of(run), outcome })));
      return { jobs: { claim, settle } };
    },
  },

  "accepts results under any lease": {
    caughtBy: "a result under a lease that does not hold the job is stale",
    replace(whole) {
      const { claim, of } = lastRuns(whole);
      const settle: RunParts["settle"] = (batch) =>
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
      const report: RunParts["report"] = (batch) =>
        whole.jobs.report(batch.map((one) => (one.progress ? one : { ...one, run: of(one.run) })));
      return { jobs: { claim, report } };
    },
  },

  "accepts progress under an old epoch": {
    caughtBy: "a stale run may not report progress",
    replace(whole) {
      const { claim, of } = lastRuns(whole);
      const report: RunParts["report"] = (batch) =>
        whole.jobs.report(batch.map((one) => (one.progress ? { ...one, run: of(one.run) } : one)));
      return { jobs: { claim, report } };
    },
  },

  "does not raise the epoch when it recovers a job": {
    caughtBy: "a dead worker's late result is stale, even while the job waits",
    replace: ({ jobs }) => ({
      jobs: {
        async settle(batch) {
          const current: Settlement[] = [];
          for (const { run, outcome } of batch) {
            const crashed = ((await jobs.get(run.id))?.crashes ?? 0) > 0;
            current.push({ run: crashed ? await runAgain(jobs, run) : run, outcome });
          }
          return jobs.settle(current);
        },
      },
    }),
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

  "opens any lease that a claim names": {
    caughtBy: "a lease that nobody has opened gives nothing to a claimant that may not open it",
    replace: ({ jobs }) => ({ jobs: { claim: (request) => jobs.claim({ ...request, opens: true }) } }),
  },

  "revives a lease that was ended": {
    caughtBy: "a lease that was ended does not come back for a claimant that believes to hold jobs under it",
    replace({ jobs }) {
      const seen = new Set<string>();
      return {
        jobs: {
          claim(request) {
            const opens = request.opens || seen.has(request.lease);
            seen.add(request.lease);
            return jobs.claim({ ...request, opens });
          },
        },
      };
    },
  },

  "revives an idle lease that has run out": {
    caughtBy: "a lease that ran out while it was idle is opened anew, but only by who holds nothing",
    replace({ jobs }) {
      const known = new Set<string>();
      return {
        jobs: {
          claim(request) {
            const opens = request.opens || known.has(request.lease);
            known.add(request.lease);
            return jobs.claim({ ...request, opens });
          },
          recover(which, budgets, fence) {
            known.clear();
            return jobs.recover(which, budgets, fence);
          },
        },
      };
    },
  },

  "never opens a lease a second time": {
    caughtBy: "a lease that ran out while it was idle is opened anew, but only by who holds nothing",
    replace({ jobs }) {
      const seen = new Set<string>();
      return {
        jobs: {
          claim(request) {
            const opens = request.opens && !seen.has(request.lease);
            seen.add(request.lease);
            return jobs.claim({ ...request, opens });
          },
        },
      };
    },
  },

  "does not tell a claimant that its lease is lost": {
    caughtBy: "a lease that has run out with jobs under it is not revived by another claim, which is told so",
    replace: ({ jobs }) => ({
      jobs: { claim: async (request) => ({ ...(await jobs.claim(request)), held: true }) },
    }),
  },

  "takes a lease for lost when there is nothing to claim": {
    caughtBy: "a lease that is held needs no opening, whether there is anything to claim or not",
    replace: ({ jobs }) => ({
      jobs: {
        async claim(request) {
          const claimed = await jobs.claim(request);
          return { ...claimed, held: claimed.held && (request.opens || claimed.jobs.length > 0) };
        },
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
