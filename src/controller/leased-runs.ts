/** Runs that agents have leased from this leader, and leases that no agent holds any more. */

import type { JobId, LeaseId } from "../core/ids.ts";
import { isSuspect, type Budgets } from "../core/jobs/job.ts";
import type { ClaimedJob } from "../store/store.ts";
import { leasesOf } from "../core/agent.ts";
import type { Term } from "../core/leadership/term.ts";
import { Batcher, byTerm } from "../platform/batcher.ts";
import type { Platform } from "../platform/platform.ts";
import type { LeaseReaper } from "../jobs/recover/lease-reaper.ts";

/** A cache: a run that is not in it is read from the store, so results of runs that an earlier leader leased count as well. */
export class LeasedRuns {
  readonly #budgets: Budgets;
  readonly #runs = new Map<JobId, { readonly agent: string; readonly job: ClaimedJob }>();
  /** Of jobs that one more crash would put into quarantine: few, if any. */
  readonly #suspects = new Map<JobId, string>();
  #onEmpty: () => void = () => {};

  constructor(budgets: Budgets) {
    this.#budgets = budgets;
  }

  get size(): number {
    return this.#runs.size;
  }

  add(agent: string, jobs: readonly ClaimedJob[]): void {
    for (const job of jobs) {
      this.#runs.set(job.id, { agent, job });
      if (isSuspect(job.crashes, this.#budgets)) this.#suspects.set(job.id, agent);
      else this.#suspects.delete(job.id);
    }
  }

  find(id: JobId, jobEpoch: number, lease: LeaseId): ClaimedJob | null {
    const job = this.#runs.get(id)?.job;
    return job && job.jobEpoch === jobEpoch && job.lease === lease ? job : null;
  }

  holdsSuspect(agent: string): boolean {
    for (const holder of this.#suspects.values()) if (holder === agent) return true;
    return false;
  }

  /** The job's run is over, however it ended; answers who had it. */
  end(id: JobId): { readonly agent: string; readonly job: ClaimedJob } | null {
    const run = this.#runs.get(id) ?? null;
    this.#runs.delete(id);
    this.#suspects.delete(id);
    if (this.#runs.size === 0) this.#onEmpty();
    return run;
  }

  clear(): void {
    this.#runs.clear();
    this.#suspects.clear();
    this.#onEmpty();
  }

  emptied(): Promise<void> {
    if (this.#runs.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#onEmpty = resolve;
    });
  }
}

/**
 * Leases in the store that no agent holds: of agents that were switched off while there was no leader, and of answers that
 * never arrived. They are ended at once and counted as interruptions; otherwise they would expire and count as crashes.
 *
 * `switchedOff`: agents that were ended for a term that is about to begin. They stay in it until their jobs were taken back.
 */
export function strayLeases(
  { clock }: Pick<Platform, "clock">,
  reaper: Pick<LeaseReaper, "recover">,
  switchedOff: Set<string>,
) {
  const flush = byTerm(async (holders: readonly string[], term: Term) => {
    await reaper.recover({ by: "holders", names: [...new Set(holders)] }, term);
    return holders.map(() => {});
  });
  // Those of the same moment go together: after a change of leaders every agent may have lost an answer.
  const ends = new Batcher({ clock, flush });
  return {
    /** Ends what agents that were switched off have left behind. Does nothing when there are none, so that it can be tried again. */
    async clear(term: Term): Promise<void> {
      const agents = [...switchedOff];
      await Promise.all(agents.map((agent) => ends.add({ write: leasesOf(agent), term })));
      for (const agent of agents) switchedOff.delete(agent);
    },

    async unanswered(agent: string, requests: readonly string[], term: Term): Promise<void> {
      await Promise.all(requests.map((each) => ends.add({ write: leasesOf(agent, each), term })));
    },
  };
}
