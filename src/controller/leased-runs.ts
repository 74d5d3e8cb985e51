/**
 * The runs that agents have leased from this leader and that have not ended yet. This is only a cache: a run that is
 * not in it is read from the store, so results of runs that an earlier leader leased are accepted as well.
 */

import type { JobId, LeaseId } from "../core/ids.ts";
import { isSuspect, type Budgets } from "../core/jobs/job.ts";
import type { ClaimedJob } from "../store/store.ts";

export class LeasedRuns {
  readonly #budgets: Budgets;
  readonly #runs = new Map<JobId, { readonly agent: string; readonly job: ClaimedJob }>();
  /** Of jobs that one more crash would put into quarantine: few, if any. */
  readonly #suspects = new Map<JobId, string>();
  #onEmpty: (() => void) | null = null;

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

  /** This very run, or null. */
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
    if (this.#runs.size === 0) this.#onEmpty?.();
    return run;
  }

  clear(): void {
    this.#runs.clear();
    this.#suspects.clear();
    this.#onEmpty?.();
  }

  /** Resolves when nothing is leased any more. */
  emptied(): Promise<void> {
    if (this.#runs.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#onEmpty = () => {
        this.#onEmpty = null;
        resolve();
      };
    });
  }
}
