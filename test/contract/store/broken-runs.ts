import type { JobId } from "../../../src/core/ids.ts";
import { LOG_LINES_MAX, type Verdict } from "../../../src/store/store.ts";
import {
  type BrokenStores,
  IN_HISTORIES,
  claims,
  gives,
  inJobs,
  type Replace,
  settlesLate,
  writes,
} from "./broken-row.ts";

/** Opens leases by a rule of its own, which knows whether a lease was claimed under before. */
function opens(rule: (asked: boolean, known: boolean) => boolean, forgetsAtRecovery = false): Replace {
  return inJobs(({ jobs }) => {
    const known = new Set<string>();
    return {
      claim(request) {
        const opening = rule(request.opens, known.has(request.lease));
        known.add(request.lease);
        return jobs.claim({ ...request, opens: opening });
      },
      recover(which, budgets, fence) {
        if (forgetsAtRecovery) known.clear();
        return jobs.recover(which, budgets, fence);
      },
    };
  });
}

/** About runs: results, logs, progress and leases. */
export const BROKEN_RUNS: BrokenStores = {
  "accepts results under an old epoch": [
    IN_HISTORIES,
    writes({ settle: ({ run, outcome }, last) => ({ run: last(run), outcome }) }),
  ],
  "accepts results under any lease": [
    "a result or a report under a lease that does not hold the job is stale",
    writes({ settle: ({ run, outcome }, last) => ({ run: { ...run, lease: last(run).lease }, outcome }) }),
  ],
  "accepts logs under an old epoch": [
    "a stale run may neither log nor report progress",
    writes({ report: (one, last) => (one.progress ? one : { ...one, run: last(one.run) }) }),
  ],
  "accepts progress under an old epoch": [
    "a stale run may neither log nor report progress",
    writes({ report: (one, last) => (one.progress ? { ...one, run: last(one.run) } : one) }),
  ],
  "does not raise the epoch when it recovers a job": [
    IN_HISTORIES,
    settlesLate(({ crashes }) => crashes > 0),
  ],
  "lets the last of several results win": [
    IN_HISTORIES,
    inJobs(({ jobs }) => {
      const results = new Map<JobId, string>();
      return {
        settle(batch) {
          for (const { run, outcome } of batch)
            if (outcome.kind === "completed") results.set(run.id, outcome.result);
          return jobs.settle(batch);
        },
        result: async (id) => ((await jobs.result(id)) === null ? null : results.get(id)!),
      };
    }),
  ],
  "settles a batch run by run": [
    "a batch of results that cannot be applied as a whole changes nothing",
    inJobs(({ jobs }) => ({
      async settle(batch) {
        const verdicts: Verdict[] = [];
        for (const one of batch) verdicts.push(...(await jobs.settle([one])));
        return verdicts;
      },
    })),
  ],
  "counts an attempt for a released job": [
    "every end of a run is told with its instant, its error and what it spent, and takes the job from its worker",
    inJobs(({ jobs }) => {
      const released = new Map<JobId, number>();
      return {
        async settle(batch) {
          const verdicts = await jobs.settle(batch);
          for (const [index, { run, outcome }] of batch.entries())
            if (outcome.kind === "released" && verdicts[index] === "accepted")
              released.set(run.id, (released.get(run.id) ?? 0) + 1);
          return verdicts;
        },
        async get(id) {
          const job = await jobs.get(id);
          return job && { ...job, attempts: job.attempts + (released.get(id) ?? 0) };
        },
      };
    }),
  ],
  "charges every final failure to the same budget": [
    "every end of a run is told with its instant, its error and what it spent, and takes the job from its worker",
    writes({
      settle: ({ run, outcome }) =>
        outcome.kind === "failed" ? { run, outcome: { ...outcome, spends: "failure" } } : { run, outcome },
    }),
  ],
  "numbers the log lines of each run from 1": [
    "log numbers have no gaps across reports and runs of a job",
    inJobs(({ jobs }) => ({
      async logs(id, after, limit) {
        const firsts = new Map<number, number>();
        for (const { seq, jobEpoch } of await jobs.logs(id, 0, LOG_LINES_MAX))
          if (!firsts.has(jobEpoch)) firsts.set(jobEpoch, seq);
        const lines = await jobs.logs(id, after, limit);
        return lines.map((line) => ({ ...line, seq: line.seq - firsts.get(line.jobEpoch)! + 1 }));
      },
    })),
  ],
  "says that a lease is held when it has run out": [
    IN_HISTORIES,
    inJobs(({ jobs }) => ({
      renew: async (lease, ttlMs) => ({ ...(await jobs.renew(lease, ttlMs)), held: true }),
    })),
  ],
  "opens any lease that a claim names": [IN_HISTORIES, opens(() => true)],
  "revives a lease that was ended": [IN_HISTORIES, opens((asked, known) => asked || known)],
  "revives an idle lease that has run out": [IN_HISTORIES, opens((asked, known) => asked || known, true)],
  "never opens a lease a second time": [IN_HISTORIES, opens((asked, known) => asked && !known)],
  "does not tell a claimant that its lease is lost": [
    IN_HISTORIES,
    gives((claimed) => ({ ...claimed, held: true })),
  ],
  "takes a lease for lost when there is nothing to claim": [
    IN_HISTORIES,
    gives((claimed, { opens: may }) => ({
      ...claimed,
      held: claimed.held && (may || claimed.jobs.length > 0),
    })),
  ],
  "never lets a lease run out": [
    "a job whose lease has run out returns to its place in line",
    claims((request) => ({ ...request, leaseMs: Number.MAX_SAFE_INTEGER })),
  ],
  "forgets to prolong a lease": [
    IN_HISTORIES,
    inJobs(({ jobs }) => ({ renew: (lease) => jobs.renew(lease, 1) })),
  ],
  "forgets the wish to cancel a running job": [
    "cancelling a running job is a wish that its claimant learns when it renews, with the first reason",
    inJobs(({ jobs }) => ({
      async cancel(id, reason) {
        const running = (await jobs.get(id))?.status === "processing";
        return running ? { outcome: "requested" } : jobs.cancel(id, reason);
      },
    })),
  ],
};
