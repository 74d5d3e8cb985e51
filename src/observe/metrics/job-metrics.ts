/**
 * Metrics of jobs at this node: submitted, claimed, started, ended. Called for every job, so it only adds up plain
 * numbers.
 */

import { hasCode } from "../../core/errors.ts";
import type { RunEnd, WorkerSink } from "../../jobs/run/worker-monitor.ts";
import type { ClaimedJob, NewJob, Recovered } from "../../store/store.ts";
import type { Instruments, Labels, Reading } from "./instruments.ts";
import { QueueTaskLabels } from "./queue-task-labels.ts";
import { FastHistogram } from "./instruments.ts";

/** Seconds. From a lone short job to those that run through the night. */
const RUN_BOUNDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800];
const WAIT_BOUNDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800, 7_200];
const CLAIM_BOUNDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5];

const ENDS: readonly RunEnd[] = ["completed", "retry", "failed", "cancelled", "interrupted", "lease_lost"];

class KindCounts {
  submitted = 0;
  started = 0;
  readonly ends: Record<RunEnd, number> = {
    completed: 0,
    retry: 0,
    failed: 0,
    cancelled: 0,
    interrupted: 0,
    lease_lost: 0,
  };
  readonly run = new FastHistogram(RUN_BOUNDS);
  readonly wait = new FastHistogram(WAIT_BOUNDS);
}

export class JobMetrics implements WorkerSink {
  readonly #kinds = new QueueTaskLabels(() => new KindCounts());
  readonly #claims = new FastHistogram(CLAIM_BOUNDS);
  readonly #claimed = { jobs: 0, empty: 0, failed: 0 };
  readonly #recovered = { queued: 0, failed: 0, cancelled: 0 };
  readonly #errors = { submit: 0, claim: 0, results: 0 };
  #leasesLost = 0;
  #leaseLostJobs = 0;
  #quarantined = 0;
  #resultsRefused = 0;

  constructor(instruments: Instruments) {
    this.#describeJobs(instruments);
    this.#describeWorker(instruments);
  }

  submitted(jobs: readonly Pick<NewJob, "queue" | "task">[]): void {
    for (const { queue, task } of jobs) this.#kinds.of(queue, task).submitted++;
  }

  submitFailed(error: unknown): void {
    if (hasCode(error, "STORE_UNAVAILABLE")) this.#errors.submit++;
  }

  claimed(jobs: number, tookMs: number): void {
    this.#claimed[jobs > 0 ? "jobs" : "empty"]++;
    this.#claims.observe(tookMs / 1_000);
  }

  claimFailed(): void {
    this.#claimed.failed++;
    this.#errors.claim++;
  }

  started({ queue, task }: ClaimedJob, waitedMs: number): void {
    const counts = this.#kinds.of(queue, task);
    counts.started++;
    counts.wait.observe(waitedMs / 1_000);
  }

  ended({ queue, task }: ClaimedJob, how: RunEnd, ranMs: number): void {
    const counts = this.#kinds.of(queue, task);
    counts.ends[how]++;
    counts.run.observe(ranMs / 1_000);
  }

  leaseLost(jobs: number): void {
    this.#leasesLost++;
    this.#leaseLostJobs += jobs;
  }

  resultsFailed(): void {
    this.#errors.results++;
  }

  resultRefused(): void {
    this.#resultsRefused++;
  }

  recovered({ status }: Pick<Recovered, "status">, quarantined: boolean): void {
    this.#recovered[status]++;
    if (quarantined) this.#quarantined++;
  }

  /** Results that the store refused because the job has moved on. */
  get resultsRefused(): number {
    return this.#resultsRefused;
  }

  get errors(): Readonly<Record<"submit" | "claim" | "results", number>> {
    return this.#errors;
  }

  #describeJobs(instruments: Instruments): void {
    const each = (count: (counts: KindCounts) => number) => (): Reading[] =>
      this.#kinds.all().map(({ labels, counted }) => [{ ...labels }, count(counted)]);
    const tallies = (of: (counts: KindCounts) => FastHistogram) => (): [Labels, FastHistogram][] =>
      this.#kinds.all().map(({ labels, counted }) => [{ ...labels }, of(counted)]);
    instruments.counter(
      { name: "baton_jobs_submitted_total", help: "Jobs that this node has stored." },
      each(({ submitted }) => submitted),
    );
    instruments.counter(
      { name: "baton_jobs_started_total", help: "Runs of jobs that have begun here." },
      each(({ started }) => started),
    );
    instruments.counter(
      {
        name: "baton_jobs_finished_total",
        help: "Runs of jobs that have ended here. retry: failed, and tried again; failed: for good; interrupted: by a drain; lease_lost: taken away.",
      },
      () =>
        this.#kinds
          .all()
          .flatMap(({ labels, counted }) =>
            ENDS.map((outcome): Reading => [{ ...labels, outcome }, counted.ends[outcome]]),
          ),
    );
    instruments.histogram(
      { name: "baton_job_run_seconds", help: "How long runs took." },
      tallies(({ run }) => run),
    );
    instruments.histogram(
      { name: "baton_job_wait_seconds", help: "From the time that a job was due until it was started." },
      tallies(({ wait }) => wait),
    );
    instruments.counter(
      {
        name: "baton_jobs_recovered_total",
        help: "Jobs that this node, as the leader, took back from dead workers or from runs long past their timeout, by what became of them.",
      },
      () => Object.entries(this.#recovered).map(([status, count]): Reading => [{ status }, count]),
    );
    instruments.counter(
      {
        name: "baton_jobs_quarantined_total",
        help: "Jobs that were put away because too many nodes died while they ran them.",
      },
      () => this.#quarantined,
    );
  }

  #describeWorker(instruments: Instruments): void {
    instruments.counter(
      { name: "baton_claims_total", help: "Claims of the worker, by what they gave." },
      () => Object.entries(this.#claimed).map(([result, count]): Reading => [{ result }, count]),
    );
    instruments.histogram(
      { name: "baton_claim_seconds", help: "How long claims took that were answered." },
      () => [[{}, this.#claims]],
    );
    instruments.counter(
      { name: "baton_leases_lost_total", help: "Leases of the worker that were lost with jobs under them." },
      () => this.#leasesLost,
    );
    instruments.counter(
      { name: "baton_lease_lost_jobs_total", help: "Jobs that were held under lost leases." },
      () => this.#leaseLostJobs,
    );
  }
}
