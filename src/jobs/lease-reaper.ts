import type { Budgets } from "../core/job.ts";
import type { JobId } from "../core/ids.ts";
import type { Term } from "../core/term.ts";
import type { Clock } from "../platform/clock.ts";
import type { Log } from "../platform/log.ts";
import type { Abandoned, Store, Recovered } from "../store/store.ts";

export interface LeaseReaperOptions {
  readonly store: Pick<Store, "jobs">;
  readonly clock: Clock;
  readonly budgets: Budgets;
  readonly intervalMs: number;
  readonly log: Log;
  readonly onRecovered: (id: JobId) => void;
}

/** A leader's duty: jobs whose claimant went silent go back to the queue, or into quarantine. */
export class LeaseReaper {
  readonly #o: LeaseReaperOptions;

  constructor(options: LeaseReaperOptions) {
    this.#o = options;
  }

  async duty(term: Term, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.recover({ by: "expiry" }, term);
      await this.#o.clock.sleep(this.#o.intervalMs, signal);
    }
  }

  async recover(which: Abandoned, term: Term): Promise<readonly Recovered[]> {
    const recovered = await this.#o.store.jobs.recover(which, this.#o.budgets, term);
    for (const { id, worker, status, crashes } of recovered) {
      const fields = { jobId: id, worker, crashes };
      if (status === "failed")
        this.#o.log.error(fields, "job is in quarantine: too many nodes died while they ran it");
      else this.#o.log.warn(fields, `job was recovered from a dead worker and is ${status}`);
      this.#o.onRecovered(id);
    }
    return recovered;
  }
}
