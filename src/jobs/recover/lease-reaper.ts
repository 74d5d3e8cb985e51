/** A leader's duty: takes back jobs whose lease has expired, or whose run is long past its timeout. Their budgets say what follows. */

import type { Budgets } from "../../core/jobs/job.ts";
import type { Term } from "../../core/leadership/term.ts";
import { repeat } from "../../platform/loop.ts";
import type { Platform } from "../../platform/platform.ts";
import type { Abandoned, Store, Recovered } from "../../store/store.ts";

export interface LeaseReaperOptions {
  readonly store: Pick<Store, "jobs">;
  readonly budgets: Budgets;
  readonly intervalMs: number;
  /**
   * How long after its timeout a run may go on before its job is taken away. Shorter than what a worker gives its own
   * handlers to end, and a run that was about to be stopped runs twice. Null: such runs are not searched for.
   */
  readonly overdueGraceMs?: number | null;
  /** The length of an agent's lease; left out where there are no agents. */
  readonly agentLeaseMs?: number;
}

const OVERDUE_GRACE_MS = 30_000;
/**
 * A leader that has just begun does not know whether an agent whose lease runs out has died or found no leader to renew it. This is how
 * long it has to find us; but never longer than a lease, so that what we have granted or renewed ourselves is not meant.
 */
const HEARING_MS = 10_000;
/** Oftener, and a look at all that runs takes time from the store for what happens once in a year. */
const OVERDUE_EVERY_MS = 5_000;
/** A look at a long line takes a store longer; it never takes more than this part of its time. */
const OVERDUE_SHARE = 1 / 50;

export class LeaseReaper {
  readonly #o: Platform & LeaseReaperOptions;
  /** Kept when a duty begins anew: one that failed at a look that took long would fail again at once. */
  #nextLookAt = -Infinity;

  constructor(platform: Platform, options: LeaseReaperOptions) {
    this.#o = { ...platform, ...options };
  }

  async duty(term: Term, signal: AbortSignal, clock = this.#o.clock): Promise<void> {
    const { intervalMs, overdueGraceMs: graceMs = OVERDUE_GRACE_MS } = this.#o;
    return repeat(clock, signal, async () => {
      await this.recover({ by: "expiry", unheard: this.#unheard() }, term);
      const startedAt = clock.monotonic();
      if (graceMs !== null && startedAt >= this.#nextLookAt) {
        try {
          await this.recover({ by: "overdue", graceMs }, term);
        } finally {
          const tookMs = clock.monotonic() - startedAt;
          this.#nextLookAt = startedAt + Math.max(OVERDUE_EVERY_MS, tookMs / OVERDUE_SHARE);
        }
      }
      return intervalMs;
    });
  }

  async recover(which: Abandoned, term: Term): Promise<readonly Recovered[]> {
    const { store, budgets, events } = this.#o;
    const recovered = await events.fenced("jobs.recover", store.jobs.recover(which, budgets, term));
    if (recovered.length === 0) return recovered;
    for (const job of recovered) this.#logRecovered(job, which.by);
    events.emit(
      "jobs.recovered",
      recovered.map((job) => ({ ...job, quarantined: isQuarantined(job, which, budgets) })),
    );
    return recovered;
  }

  #unheard(): boolean {
    const { clock, state, agentLeaseMs } = this.#o;
    if (agentLeaseMs === undefined) return false;
    const since = state.agentsHeardSince;
    return since === null || clock.monotonic() - since < Math.min(HEARING_MS, agentLeaseMs);
  }

  #logRecovered(job: Recovered, by: Abandoned["by"]): void {
    const { log, budgets } = this.#o;
    const { id, worker, status, interruptions, crashes, failures } = job;
    if (by === "overdue") {
      const message = `job ran long past its timeout, was taken from its worker and is ${status}`;
      return log.warn({ jobId: id, worker, failures }, message);
    }
    const fields = { jobId: id, worker, interruptions, crashes };
    if (status !== "failed")
      log.warn(fields, `job was recovered from a worker that is gone and is ${status}`);
    else if (crashes < budgets.crashesMax) log.error(fields, "job has failed: it was interrupted too often");
    else log.error(fields, "job is in quarantine: too many nodes died while they ran it");
  }
}

function isQuarantined({ status, crashes }: Recovered, { by }: Abandoned, { crashesMax }: Budgets): boolean {
  return status === "failed" && by !== "overdue" && crashes >= crashesMax;
}
