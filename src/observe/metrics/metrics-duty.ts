/** The duty of the metrics aggregator: writes a sample of the whole cluster every ten seconds, and keeps it for a day. */

import { rounded, sumOf } from "../../core/format-figures.ts";
import { FINAL_STATUSES, JOB_STATUSES, type JobStatus } from "../../core/jobs/job.ts";
import type { NodeInfo } from "../../core/node.ts";
import type { Platform } from "../../platform/platform.ts";
import type { Store } from "../../store/store.ts";
import { zeros } from "./instruments.ts";
import type { Duty } from "../../core/leadership/term.ts";

export interface ClusterSample {
  readonly at: number;
  readonly leaderEpoch: number;
  readonly nodes: number;
  readonly jobs: Readonly<Record<JobStatus, number>>;
  readonly finishedPerSecond: number;
  readonly load: {
    /** Shares between 0 and 1, the mean of the nodes. */
    readonly cpu: number;
    readonly memory: number;
    readonly loopLagMsMax: number;
    readonly running: number;
  };
}

type Measured = Omit<ClusterSample, "at" | "leaderEpoch">;

const INTERVAL_MS = 10_000;
const KEPT_MS = 24 * 3_600_000;
const PURGE_EVERY = 60;

export function metricsDuty(
  { clock, events }: Pick<Platform, "clock" | "events">,
  store: Pick<Store, "queues" | "samples" | "purge">,
  nodes: () => readonly NodeInfo[],
  intervalMs = INTERVAL_MS,
): Duty {
  return async (term, signal) => {
    let before: { finished: number; at: number } | null = null;
    for (let n = 0; !signal.aborted; n++) {
      const jobs = total(await store.queues.list());
      const finished = sumOf(FINAL_STATUSES, (status) => jobs[status]);
      const at = clock.monotonic();
      // Retention removes finished jobs from the counts: a negative rate is that, and not work undone.
      const perSecond = before ? Math.max(0, (finished - before.finished) / ((at - before.at) / 1_000)) : 0;
      before = { finished, at };
      const sample: Measured = { ...ofNodes(nodes()), jobs, finishedPerSecond: rounded(perSecond) };
      await events.fenced("samples.note", store.samples.note(JSON.stringify(sample), term));
      if (n % PURGE_EVERY === 0) {
        await events.fenced("samples.purge", store.purge({ of: "samples", ageMs: KEPT_MS }, term));
      }
      await clock.sleep(intervalMs, signal);
    }
  };
}

/** As the duty wrote them; what is not readable any more is left out. */
export async function readSamples(store: Pick<Store, "samples">, limit: number): Promise<ClusterSample[]> {
  const samples = await store.samples.list(limit);
  return samples.map(({ at, leaderEpoch, sample }) => ({
    at,
    leaderEpoch,
    ...(JSON.parse(sample) as Measured),
  }));
}

export function total(
  parts: readonly { readonly counts: Readonly<Record<JobStatus, number>> }[],
): Record<JobStatus, number> {
  const sum = zeros(JOB_STATUSES);
  for (const { counts } of parts) {
    for (const status of JOB_STATUSES) sum[status] += counts[status];
  }
  return sum;
}

function ofNodes(all: readonly NodeInfo[]): Pick<Measured, "nodes" | "load"> {
  const living = all.filter(({ status }) => status !== "dead");
  const mean = (pick: (node: NodeInfo) => number): number =>
    living.length === 0 ? 0 : rounded(sumOf(living, pick) / living.length, 3);
  return {
    nodes: living.length,
    load: {
      cpu: mean(({ load }) => load.cpu),
      memory: mean(({ load }) => load.memory),
      loopLagMsMax: Math.max(0, ...living.map(({ load }) => load.loopLagMs)),
      running: sumOf(living, ({ load }) => load.jobs),
    },
  };
}
