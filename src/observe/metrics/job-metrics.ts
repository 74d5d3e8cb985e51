/**
 * Metrics of jobs at this node. Called for every job, so it only adds up plain numbers. The number of pairs of queue and
 * task that have numbers of their own is limited.
 */

import { hasCode } from "../../core/errors.ts";
import type { RunEnd, WorkerSink } from "../../jobs/run/worker-monitor.ts";
import type { ClaimedJob, NewJob, Recovered } from "../../store/store.ts";
import type { AgentSink } from "../../controller/controller.ts";
import type { Tracing } from "../../platform/tracing.ts";
import { byLabel, FastHistogram, type Instruments, type Reading, zeros } from "./instruments.ts";
import { JobMeters, meterAttributes } from "./job-meters.ts";

/** Seconds. From a lone short job to those that run through the night. */
const RUN_BOUNDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800];
const WAIT_BOUNDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800, 7_200];
const CLAIM_BOUNDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5];

const ENDS: readonly RunEnd[] = ["completed", "retry", "failed", "cancelled", "interrupted", "lease_lost"];

class KindCounts {
  submitted = 0;
  started = 0;
  readonly ends = zeros(ENDS);
  readonly run = new FastHistogram(RUN_BOUNDS);
  readonly wait = new FastHistogram(WAIT_BOUNDS);
  readonly attributes: ReturnType<typeof meterAttributes>;

  constructor({ queue, task }: QueueTask) {
    this.attributes = meterAttributes(queue, task);
  }
}

export class JobMetrics implements WorkerSink {
  readonly #kinds = queueTaskLabels((labels) => new KindCounts(labels));
  readonly #claims = new FastHistogram(CLAIM_BOUNDS);
  readonly #claimed = { jobs: 0, empty: 0, failed: 0 };
  readonly #recovered = { queued: 0, failed: 0, cancelled: 0 };
  readonly errors = { submit: 0, claim: 0, results: 0 };
  #leasesLost = 0;
  #leaseLostJobs = 0;
  #quarantined = 0;

  readonly #meters: JobMeters;

  constructor(instruments: Instruments, tracing: Pick<Tracing, "meter">) {
    this.#meters = new JobMeters(tracing, { run: RUN_BOUNDS, wait: WAIT_BOUNDS });
    const each =
      <Value>(pick: (counts: KindCounts) => Value) =>
      (): Reading<Value>[] =>
        this.#kinds.all.map(({ labels, counted }) => [{ ...labels }, pick(counted)]);
    instruments.register({
      baton_jobs_submitted_total: each(({ submitted }) => submitted),
      baton_jobs_started_total: each(({ started }) => started),
      baton_jobs_finished_total: () =>
        this.#kinds.all.flatMap(({ labels, counted }) =>
          ENDS.map((outcome): Reading => [{ ...labels, outcome }, counted.ends[outcome]]),
        ),
      baton_jobs_recovered_total: () => byLabel("status", this.#recovered),
      baton_jobs_quarantined_total: () => this.#quarantined,
      baton_claims_total: () => byLabel("result", this.#claimed),
      baton_leases_lost_total: () => this.#leasesLost,
      baton_lease_lost_jobs_total: () => this.#leaseLostJobs,
      baton_job_run_seconds: each(({ run }) => run),
      baton_job_wait_seconds: each(({ wait }) => wait),
      baton_claim_seconds: () => this.#claims,
    });
  }

  submitted(jobs: readonly Pick<NewJob, "queue" | "task">[]): void {
    for (const { queue, task } of jobs) {
      const counts = this.#kinds.of(queue, task);
      counts.submitted++;
      this.#meters.submitted(counts.attributes);
    }
  }

  submitFailed(error: unknown): void {
    if (hasCode(error, "STORE_UNAVAILABLE")) this.errors.submit++;
  }

  claimed(jobs: number, tookMs: number): void {
    this.#claimed[jobs > 0 ? "jobs" : "empty"]++;
    this.#claims.observe(tookMs / 1_000);
  }

  claimFailed(): void {
    this.#claimed.failed++;
    this.errors.claim++;
  }

  started({ queue, task }: ClaimedJob, waitedMs: number): void {
    const counts = this.#kinds.of(queue, task);
    counts.started++;
    counts.wait.observe(waitedMs / 1_000);
    this.#meters.started(counts.attributes, waitedMs);
  }

  ended({ queue, task }: ClaimedJob, how: RunEnd, ranMs: number): void {
    const counts = this.#kinds.of(queue, task);
    counts.ends[how]++;
    counts.run.observe(ranMs / 1_000);
    this.#meters.ended(counts.attributes, how, ranMs);
  }

  leaseLost(jobs: number): void {
    this.#leasesLost++;
    this.#leaseLostJobs += jobs;
  }

  resultsFailed(): void {
    this.errors.results++;
  }

  recovered({ status }: Pick<Recovered, "status">, quarantined: boolean): void {
    this.#recovered[status]++;
    if (quarantined) this.#quarantined++;
  }
}

type AgentOutcome = Parameters<AgentSink["result"]>[0];
const AGENT_OUTCOMES = [
  ...ENDS.filter((end) => end !== "lease_lost"),
  "released",
  "repeated",
  "refused",
] as const;

/** Jobs that agents lease from this node and return to it, while it leads. */
export class AgentMetrics implements AgentSink {
  readonly #results = zeros(AGENT_OUTCOMES);
  #leased = 0;

  constructor(instruments: Instruments) {
    instruments.register({
      baton_agent_leased_jobs_total: () => this.#leased,
      baton_agent_results_total: () => byLabel("outcome", this.#results),
    });
  }

  leased(jobs: number): void {
    this.#leased += jobs;
  }

  result(how: AgentOutcome): void {
    this.#results[how]++;
  }
}

/** Each pair of queue and task adds some forty lines to every scrape. */
const KINDS_MAX = 100;
export const OTHER = "other";

interface QueueTask {
  readonly queue: string;
  readonly task: string;
}

/** `of` gives the same object each time. Those that come when there are enough share one. */
export function queueTaskLabels<Counted>(make: (labels: QueueTask) => Counted) {
  const byQueue = new Map<string, Map<string, Counted>>();
  const all: {
    readonly labels: QueueTask;
    readonly counted: Counted;
  }[] = [];
  let others: Counted | null = null;

  function note(queue: string, task: string): Counted {
    const labels = { queue, task };
    const counted = make(labels);
    all.push({ labels, counted });
    return counted;
  }

  function add(queue: string, task: string): Counted {
    if (all.length >= KINDS_MAX) return (others ??= note(OTHER, OTHER));
    const counted = note(queue, task);
    const tasks = byQueue.get(queue);
    if (tasks) tasks.set(task, counted);
    else byQueue.set(queue, new Map([[task, counted]]));
    return counted;
  }

  return {
    of: (queue: string, task: string): Counted => byQueue.get(queue)?.get(task) ?? add(queue, task),
    all,
  };
}
