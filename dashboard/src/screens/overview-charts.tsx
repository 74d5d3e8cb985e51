/** The last quarter of an hour: samples of the cluster from before the page was opened, and what came live since. */

import { link, type Moment, moments } from "../api/live.ts";
import { useResource } from "../api/resource.ts";
import type { SampleBody } from "../../../src/api/operations/cluster/cluster.ts";
import { second } from "../clock.ts";
import { Chart } from "../parts/chart.tsx";
import { compact, duration, perSecond } from "../parts/format.ts";

/** One every ten seconds. */
const SAMPLES = 90;

interface Point {
  readonly at: number;
  readonly out: number;
  readonly in: number | null;
  readonly waiting: number;
  readonly running: number;
  readonly waitMs: number | null;
}

export function OverviewCharts() {
  const { data } = useResource("GET /cluster/metrics", { query: { limit: SAMPLES } }, { freshMs: null });
  const points = pointsOf(data?.samples ?? [], moments.value);
  const last = points.at(-1);
  // No news is that nothing changed: the line goes on.
  if (last && link.value.state === "live") points.push({ ...last, at: Math.max(last.at + 1, second.value) });
  const times = points.map(({ at }) => at);
  return (
    <div class="charts">
      <Chart
        title="Per second"
        times={times}
        format={perSecond}
        series={[
          { label: "in", colour: "--accent", values: points.map((point) => point.in) },
          { label: "out", colour: "--good", values: points.map((point) => point.out) },
        ]}
      />
      <Chart
        title="Jobs"
        times={times}
        format={compact}
        series={[
          { label: "waiting", colour: "--wait", values: points.map((point) => point.waiting) },
          { label: "running", colour: "--accent", values: points.map((point) => point.running) },
        ]}
      />
      <Chart
        title="Wait until it runs"
        times={times}
        format={duration}
        series={[{ label: "p95", colour: "--wait", values: points.map((point) => point.waitMs) }]}
      />
    </div>
  );
}

function pointsOf(samples: readonly SampleBody[], live: readonly Moment[]): Point[] {
  const first = live[0]?.at ?? Infinity;
  const before = samples
    .map((sample) => ({
      at: Date.parse(sample.at),
      out: sample.finished_per_second,
      in: null,
      waiting: sample.jobs.queued,
      running: sample.jobs.processing,
      waitMs: null,
    }))
    .filter(({ at }) => at < first)
    .reverse();
  const since = live.map(({ at, overview }) => ({
    at,
    out: overview.rates.finished_per_second,
    in: overview.rates.submitted_per_second,
    waiting: overview.jobs.queued,
    running: overview.jobs.processing,
    waitMs: overview.times.wait_ms?.p95 ?? null,
  }));
  return [...before, ...since];
}
