/** Baton beside other job queues on the same servers, in one run: the goals that compare with the best of them. */

import type { Bar } from "../chart.ts";
import { runOthers, type Drained, type Enqueued } from "../others.ts";
import { atLeast, atMost, besideRow, compare, type Goal, type Row, type Scenario } from "../scenario.ts";

const OURS = "baton-pg";
const WITH_REDIS = "baton-redis";
const BEFORE = "baton-pg@before";
const RANGES = "pg-range";
const FSYNC_REDIS = "bullmq-fsync";
/** They keep jobs in PostgreSQL; the best of them is what is compared with. */
const ON_POSTGRES = ["graphile-worker", "pg-boss"] as const;
const FLOORS = ["pg-floor", RANGES];

const DRAINS: Readonly<Record<string, number>> = {
  "bulk, 1 worker": 4,
  "bulk, 2 workers": 4,
  "bulk, 4 workers": 4,
  "singles, 1 worker": 1.8,
  "singles, 4 workers": 1.5,
};
const RANGES_MIN = 0.6;
const REDIS_MIN = 0.95;
const FSYNC_REDIS_MIN = 3;
const BULK_MIN = 3;
const PICK_UP_MAX = { p50: 0.5, p99: 0.8 } as const;
const GROWTH_MAX = 2;
const CPU_MAX = 0.4;
/** The old snapshot is held for 100 s at 1, and for ten minutes at this one. */
const SNAPSHOT_SCALE = 6;

const common = { only: "postgres", goals: ["postgres"] } as const;

export const othersDrain: Scenario = {
  ...common,
  name: "others-drain",
  about: "drain of a backlog from the bulk call and from single submits, 1, 2 and 4 worker processes",
  async run(bench) {
    const contenders = [OURS, WITH_REDIS, ...ON_POSTGRES, FSYNC_REDIS, RANGES, "pg-floor"];
    const { drain } = await runOthers(bench, { scenarios: ["drain"], contenders });
    bench.chart("drain", {
      title: "Drain of a backlog of no-op jobs",
      unit: "jobs/s",
      groups: Object.keys(DRAINS).map((variant) => ({
        label: variant,
        bars: bars(contenders, (name) => drain[name]?.[variant]?.rate.median),
      })),
    });
    const row = (variant: string, least: number, name: string, beside: string): Row => {
      const figure = `drain${name === WITH_REDIS ? " with Redis" : ""}, ${variant}`;
      return ratesRow(figure, drain[name]![variant]!, drain[beside]![variant]!, beside, atLeast(least));
    };
    return Object.entries(DRAINS).flatMap(([variant, least]) => {
      const best = bestOf(ON_POSTGRES, (name) => drain[name]![variant]!.rate.median);
      const rows = [row(variant, least, OURS, best)];
      if (!variant.startsWith("bulk")) return rows;
      return [
        ...rows,
        row(variant, RANGES_MIN, OURS, RANGES),
        row(variant, REDIS_MIN, WITH_REDIS, OURS),
        row(variant, FSYNC_REDIS_MIN, WITH_REDIS, FSYNC_REDIS),
      ];
    });
  },
};

export const othersSubmits: Scenario = {
  ...common,
  name: "others-submits",
  about: "submits of one caller, of 50 callers, and of 1,000 jobs at a time",
  async run(bench) {
    const contenders = [OURS, ...ON_POSTGRES, FSYNC_REDIS, "pg-floor"];
    const { enqueue } = await runOthers(bench, { scenarios: ["enqueue"], contenders });
    const titles = { one: "1 caller", fifty: "50 callers", bulk: "1,000 at a time" } as const;
    const modes = Object.keys(titles) as (keyof typeof titles)[];
    bench.chart("submits", {
      title: "Submits",
      unit: "jobs/s",
      groups: modes.map((mode) => ({
        label: titles[mode],
        bars: bars(contenders, (name) => enqueue[name]?.[mode].rate.median),
      })),
    });
    return modes.map((mode): Row => {
      const beside = bestOf(ON_POSTGRES, (name) => enqueue[name]![mode].rate.median);
      const [ours, theirs] = [enqueue[OURS]![mode], enqueue[beside]![mode]];
      const goal = mode === "bulk" ? atLeast(BULK_MIN) : null;
      return ratesRow(`submits, ${titles[mode]}`, ours, theirs, beside, goal);
    });
  },
};

export const othersPickUp: Scenario = {
  ...common,
  name: "others-pick-up",
  about: "from the call of submit to the start of the handler in another process, at 100 jobs/s",
  async run(bench) {
    const contenders = [OURS, WITH_REDIS, ...ON_POSTGRES, FSYNC_REDIS, "pg-floor"];
    const { latency } = await runOthers(bench, { scenarios: ["latency"], contenders, scale: 2 });
    const percentiles = ["p50", "p99"] as const;
    bench.chart("pick-up", {
      title: "From submit to the start of the handler in another process, at 100 jobs/s",
      unit: "ms",
      groups: percentiles.map((p) => ({ label: p, bars: bars(contenders, (name) => latency[name]?.[p]) })),
    });
    const rows = percentiles.map((p): Row => {
      const beside = bestOf(ON_POSTGRES, (name) => -latency[name]![p]);
      const figure = `pick-up in another process, ${p}`;
      return single(figure, "ms", latency[OURS]![p], latency[beside]![p], beside, PICK_UP_MAX[p]);
    });
    const [redis, alone] = [latency[WITH_REDIS]!.p50, latency[OURS]!.p50];
    return [...rows, single("pick-up with Redis, p50", "ms", redis, alone, OURS, 1)];
  },
};

export const othersSnapshot: Scenario = {
  ...common,
  name: "others-snapshot",
  about: "p50 of the pick-up at 1,500 jobs/s while another transaction holds an old snapshot for ten minutes",
  async run(bench) {
    const contenders = [OURS, "graphile-worker"];
    const scale = bench.quick ? 1 : SNAPSHOT_SCALE;
    const { snapshot } = await runOthers(bench, { scenarios: ["snapshot"], contenders, scale });
    return contenders.map((name): Row => {
      const { before, slices } = snapshot[name]!;
      const figure = `pick-up beside an old snapshot, p50 at the end: ${name}`;
      const most = name === OURS ? GROWTH_MAX : undefined;
      return single(figure, "ms", slices.at(-1)!, before, "before it", most);
    });
  },
};

export const othersCpu: Scenario = {
  ...common,
  name: "others-cpu",
  about:
    "processor time for each job, submit and drain together, of both sides, beside an earlier version (--before DIR)",
  async run(bench) {
    if (!bench.before) {
      bench.say("left out: it needs a checkout of the earlier version, --before DIR");
      return [];
    }
    const contenders = [OURS, BEFORE];
    const { drain, enqueue } = await runOthers(bench, { scenarios: ["enqueue", "drain"], contenders });
    const jobUs = (name: string): number => {
      const submitted = cpuOf(enqueue[name]!.bulk);
      const drained = cpuOf(drain[name]!["bulk, 1 worker"]!);
      return submitted.own + submitted.server + drained.own + drained.server;
    };
    return [single("CPU for each job, submit and drain", "µs", jobUs(OURS), jobUs(BEFORE), BEFORE, CPU_MAX)];
  },
};

function single(
  figure: string,
  unit: string,
  ours: number,
  floor: number,
  beside: string,
  most?: number,
): Row {
  return besideRow(figure, unit, { ours, floor }, { beside, goal: most === undefined ? null : atMost(most) });
}

function ratesRow(
  figure: string,
  ours: Drained | Enqueued,
  theirs: Drained | Enqueued,
  beside: string,
  goal: Goal | null,
): Row {
  const rates = compare(ours.rate.values, theirs.rate.values);
  return besideRow(figure, "jobs/s", rates, {
    beside,
    goal,
    cpuUs: { ours: cpuOf(ours), floor: cpuOf(theirs) },
  });
}

function cpuOf(measured: Drained | Enqueued): { own: number; server: number } {
  const own = "workerUs" in measured ? measured.workerUs : measured.clientUs;
  return { own, server: measured.serverUs };
}

function bestOf(names: readonly string[], score: (name: string) => number): string {
  return names.reduce((best, name) => (score(name) > score(best) ? name : best));
}

function bars(names: readonly string[], valueOf: (name: string) => number | undefined): Bar[] {
  return names.flatMap((label): Bar[] => {
    const value = valueOf(label);
    const kind = label.startsWith("baton") ? "ours" : FLOORS.includes(label) ? "floor" : "peer";
    return value === undefined ? [] : [{ label, value, kind }];
  });
}
