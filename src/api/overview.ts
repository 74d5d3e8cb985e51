/** Builds the overview of the cluster from the nodes' reports and the store; where each node has its own, of all nodes. */

import { z } from "zod";
import { ALERT_CODES, alertsOf, mergeAlerts, type Alert } from "../core/health/alerts.ts";
import { rounded, sumOf } from "../core/format-figures.ts";
import { total } from "../observe/metrics/metrics-duty.ts";
import { mixedQuantiles } from "../core/health/quantiles.ts";
import { askAllNodes } from "./ask-all-nodes.ts";
import { fromWire, toWire } from "./schema/to-wire.ts";
import type { Inbound } from "../transport/hop-headers.ts";
import { StatusCounts } from "./bodies/fields.ts";
import type { Tenure } from "../leadership/coordination.ts";
import type { NodeServices } from "./node-services.ts";
import { within } from "../platform/loop.ts";

const QuantilesBody = z.object({ p50: z.number(), p95: z.number(), p99: z.number() });

export const AlertBody = z.object({
  code: z.enum(ALERT_CODES),
  severity: z.enum(["warning", "critical"]),
  subject: z.string().nullable().describe("the node, queue or schedule that it is about"),
  message: z.string(),
  remedy: z.string().describe("what to do about it"),
  since: z.string(),
});
export type AlertBody = z.output<typeof AlertBody>;

export const OverviewBody = z.object({
  at: z.string(),
  node: z.string().describe("who answers"),
  partial: z.boolean().describe("a node could not be reached, so what it knows is missing"),
  unreachable: z.array(z.string()),
  cluster: z.object({
    name: z.string(),
    formed: z.boolean(),
    total_nodes: z.int(),
    active_nodes: z.int(),
    draining_nodes: z.int(),
    dead_nodes: z.int(),
    joining_nodes: z.int(),
    coordination: z.string(),
    channels: z.string(),
    dispatch: z.enum(["pull", "push"]),
    store: z.string(),
  }),
  leader: z
    .object({
      node_id: z.string(),
      epoch: z.int(),
      acquired_at: z.string().nullable(),
      lease_until: z.string().nullable(),
    })
    .nullable(),
  jobs: StatusCounts,
  counted_at: z
    .string()
    .nullable()
    .describe("when the jobs were counted: many of them are not counted every second"),
  rates: z.object({
    submitted_per_second: z.number(),
    finished_per_second: z.number(),
    failed_per_second: z.number(),
  }),
  times: z
    .object({
      wait_ms: QuantilesBody.nullable(),
      run_ms: QuantilesBody.nullable(),
      of: z.int().describe("how many finished jobs this is made of"),
    })
    .describe("of jobs that ended in the last five minutes"),
  backlog: z.object({
    ready: z.int().describe("jobs that are due and that nobody runs"),
    oldest_age_ms: z.int().nullable(),
  }),
  workers: z.object({ slots: z.int(), running: z.int() }),
  alerts: z.array(AlertBody),
});
export type OverviewBody = z.output<typeof OverviewBody>;

const alertBody = toWire(AlertBody);
const alertOf = fromWire(AlertBody);
const overviewBody = toWire(OverviewBody);

/** What a leader's lease looks like changes with each renewal: asking the backend for it is not worth holding up an answer. */
const LEADERS_MS = 500;

/** Reads the overview of all nodes; of this one alone for another node that asks. */
export function overviewReader(
  services: Omit<NodeServices, "live">,
): (inbound: Inbound) => Promise<OverviewBody> {
  /** As last told: an alert that goes on keeps its beginning. */
  let alerts: readonly Alert[] = [];

  async function own(): Promise<OverviewBody> {
    const { identity, cluster, clock, guarantees, insight, health } = services;
    const [snapshot, leader] = await Promise.all([insight.read(), leaderOf(services)]);
    const now = clock.now();
    const info = cluster.info();
    const nodes = cluster.nodes();
    const living = nodes.filter(({ alive }) => alive);
    // Where the store is not shared, each tells of its own traffic.
    const counted = guarantees.shared ? living : living.filter(({ name }) => name === identity.name);
    const rateOf = (what: "submitted" | "finished" | "failed"): number =>
      rounded(sumOf(counted, ({ load }) => load.traffic?.[what]));
    const [finished, failed] = [rateOf("finished"), rateOf("failed")];
    alerts = alertsOf(
      {
        now,
        formed: info.formed,
        leader: leader?.nodeId ?? null,
        shared: guarantees.shared,
        nodes,
        waiting: snapshot.waiting,
        ended: snapshot.times,
        late: snapshot.late,
        refused: snapshot.refused,
        agents: snapshot.agents,
        oldestSnapshot: snapshot.oldestSnapshot,
        storeTrouble: health.problem ?? snapshot.trouble,
      },
      alerts,
    );
    const oldest = snapshot.waiting.reduce((at, { since }) => Math.min(at, since), Infinity);
    return overviewBody({
      at: now,
      node: identity.name,
      partial: false,
      unreachable: [],
      cluster: { ...info, ...info.fabric, store: guarantees.name },
      leader,
      jobs: snapshot.jobs,
      countedAt: snapshot.countedAt,
      rates: {
        submittedPerSecond: rateOf("submitted"),
        finishedPerSecond: finished,
        failedPerSecond: failed,
      },
      times: { waitMs: snapshot.times.wait, runMs: snapshot.times.run, of: snapshot.times.of },
      backlog: {
        ready: snapshot.jobs.queued,
        oldestAgeMs: oldest === Infinity ? null : Math.max(0, Math.round(now - oldest)),
      },
      workers: {
        slots: sumOf(counted, ({ load }) => load.slots),
        running: sumOf(counted, ({ load }) => load.jobs),
      },
      alerts,
    });
  }

  return async (inbound) => {
    const { answers, partial, unreachable } = await askAllNodes<OverviewBody>(services, inbound, {
      here: own,
      path: () => "/cluster/overview",
      read: (body) => OverviewBody.parse(body),
    });
    const parts = answers.map(({ answer }) => answer);
    return { ...(parts.length === 1 ? parts[0]! : merged(parts)), partial, unreachable };
  };
}

/** As this node last saw it, with the times of its lease if the backend tells them soon. */
async function leaderOf(services: Omit<NodeServices, "live">) {
  const { leadership, cluster, clock } = services;
  const term = leadership.current();
  if (!term) return null;
  const asked = (async () => cluster.leaders())().catch((): readonly Tenure[] => []);
  const leaders = (await within(clock, LEADERS_MS, asked)) ?? [];
  const known = leaders.find(({ role, epoch }) => role === "scheduler" && epoch === term.epoch);
  return { ...known, nodeId: term.leader, epoch: term.epoch };
}

/** The first is our own: what everybody knows alike is taken from it. */
function merged(parts: readonly OverviewBody[]): OverviewBody {
  const own = parts[0]!;
  const sum = (pick: (part: OverviewBody) => number): number => rounded(sumOf(parts, pick));
  const oldest = parts.flatMap(({ backlog }) =>
    backlog.oldest_age_ms === null ? [] : [backlog.oldest_age_ms],
  );
  const counted = parts.map(({ counted_at }) => counted_at).filter((at) => at !== null);
  return {
    ...own,
    jobs: total(parts.map(({ jobs }) => ({ counts: jobs }))),
    counted_at: counted.length < parts.length ? null : counted.sort()[0]!,
    rates: {
      submitted_per_second: sum(({ rates }) => rates.submitted_per_second),
      finished_per_second: sum(({ rates }) => rates.finished_per_second),
      failed_per_second: sum(({ rates }) => rates.failed_per_second),
    },
    times: {
      wait_ms: mixedQuantiles(parts.map(({ times }) => ({ of: times.of, quantiles: times.wait_ms }))),
      run_ms: mixedQuantiles(parts.map(({ times }) => ({ of: times.of, quantiles: times.run_ms }))),
      of: sum(({ times }) => times.of),
    },
    backlog: {
      ready: sum(({ backlog }) => backlog.ready),
      oldest_age_ms: oldest.length === 0 ? null : Math.max(...oldest),
    },
    workers: { slots: sum(({ workers }) => workers.slots), running: sum(({ workers }) => workers.running) },
    alerts: mergeAlerts(parts.map(({ alerts }) => alerts.map(alertOf))).map(alertBody),
  };
}
