/** How a broken store is written down: the promise whose proof must fail, and what stands in the place of some methods. */

import type { JobId } from "../../../src/core/ids.ts";
import type { Budgets, Job } from "../../../src/core/jobs/job.ts";
import type { Term } from "../../../src/core/leadership/term.ts";
import type { AccessStore } from "../../../src/store/access.ts";
import type { AgentStore } from "../../../src/store/agents.ts";
import type { OwnershipStore } from "../../../src/store/ownership.ts";
import type { SampleStore } from "../../../src/store/samples.ts";
import type {
  Abandoned,
  Claimed,
  ClaimRequest,
  JobStore,
  NewJob,
  QueueStore,
  Report,
  Run,
  ScheduleStore,
  Settlement,
  Store,
  TermStore,
  Verdict,
} from "../../../src/store/store.ts";
import { claimRequest } from "../../support/job-builders.ts";

/** The two halves of `record`, so that a store can be broken in one of them. */
export interface RunParts {
  settle(settlements: readonly Settlement[], fence?: Term): Promise<readonly Verdict[]>;
  report(reports: readonly Report[], fence?: Term): Promise<readonly Verdict[]>;
}

export type WholeStore = Store & { readonly jobs: JobStore & RunParts };

export interface Replaced {
  readonly jobs?: Partial<JobStore & RunParts>;
  readonly queues?: Partial<QueueStore>;
  readonly schedules?: Partial<ScheduleStore>;
  readonly terms?: Partial<TermStore>;
  readonly samples?: Partial<SampleStore>;
  readonly agents?: Partial<AgentStore>;
  readonly access?: Partial<AccessStore>;
  readonly ownership?: Partial<OwnershipStore>;
  readonly purge?: Store["purge"];
}

/** In the place of a sentence: the random histories catch it. */
export const IN_HISTORIES = "no history of commands breaks the ledger";

export type Replace = (whole: WholeStore) => Replaced;

/** By what they do wrong. */
export type BrokenStores = Readonly<Record<string, readonly [caughtBy: string, replace: Replace]>>;

export function inJobs(of: (whole: WholeStore) => Partial<JobStore & RunParts>): Replace {
  return (whole) => ({ jobs: of(whole) });
}

/** Whoever asks, it writes under the newest term. */
export async function newest({ terms }: Store, fence: Term): Promise<Term> {
  return (await terms.read(fence.role)) ?? fence;
}

/** This method writes under the newest term, whatever term it is given. */
export function unfenced<Port extends "jobs" | "schedules" | "samples" | "agents" | "ownership">(
  port: Port,
  method: string & keyof NonNullable<WholeStore[Port]>,
): Replace {
  return (whole) => {
    const calls = whole[port] as unknown as Record<string, (...args: unknown[]) => Promise<unknown>>;
    const call = async (...args: unknown[]): Promise<unknown> => {
      const fence = args.findLastIndex((arg) => (arg as Term | undefined)?.incarnation !== undefined);
      if (fence !== -1) args[fence] = await newest(whole, args[fence] as Term);
      return calls[method]!(...args);
    };
    return { [port]: { [method]: call } };
  };
}

export function claims(as: (request: ClaimRequest) => ClaimRequest): Replace {
  return inJobs(({ jobs }) => ({ claim: (request) => jobs.claim(as(request)) }));
}

export function gives(as: (claimed: Claimed, request: ClaimRequest) => Claimed): Replace {
  return inJobs(({ jobs }) => ({ claim: async (request) => as(await jobs.claim(request), request) }));
}

export function submits(as: (job: NewJob) => NewJob): Replace {
  return inJobs(({ jobs }) => ({ submit: async (batch, author) => jobs.submit(batch.map(as), author) }));
}

/** Recovers something else, or by other budgets. */
export function recovers(
  as: (which: Abandoned) => Abandoned,
  by: (budgets: Budgets) => Budgets = (given) => given,
): Replace {
  return inJobs(({ jobs }) => ({
    recover: (which, budgets, fence) => jobs.recover(as(which), by(budgets), fence),
  }));
}

type LastRun = (run: Run) => Run;

/** Writes other ends of runs, or reports, than it was told. It knows the last run of every job. */
export function writes(as: {
  readonly settle?: (one: Settlement, last: LastRun) => Settlement;
  readonly report?: (one: Report, last: LastRun) => Report;
}): Replace {
  return inJobs(({ jobs }) => {
    const runs = new Map<JobId, Run>();
    const last: LastRun = (run) => runs.get(run.id) ?? run;
    const { settle, report } = as;
    return {
      async claim(request) {
        const claimed = await jobs.claim(request);
        for (const run of claimed.jobs) runs.set(run.id, run);
        return claimed;
      },
      ...(settle && { settle: (batch) => jobs.settle(batch.map((one) => settle(one, last))) }),
      ...(report && { report: (batch) => jobs.report(batch.map((one) => report(one, last))) }),
    };
  });
}

/** Takes the late result of a job that was taken away and shows this: it gives the job out again, behind its back. */
export function settlesLate(taken: (job: Job) => boolean): Replace {
  return inJobs(({ jobs }) => {
    const current = async ({ run, outcome }: Settlement): Promise<Settlement> => {
      const job = await jobs.get(run.id);
      if (!job || !taken(job) || job.status !== "queued" || job.jobEpoch !== run.jobEpoch + 1)
        return { run, outcome };
      const { lease } = run;
      const only = { tasks: new Set([job.task]), queues: new Set([job.queue]), limit: 1 };
      const claimed = await jobs.claim(claimRequest({ worker: "late", lease, leaseMs: 1_000, ...only }));
      return { run: claimed.jobs[0] ?? run, outcome };
    };
    return {
      async settle(batch) {
        const settlements: Settlement[] = [];
        for (const one of batch) settlements.push(await current(one));
        return jobs.settle(settlements);
      },
    };
  });
}
