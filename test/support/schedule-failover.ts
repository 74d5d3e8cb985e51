/** Schedules that fire every second while their leader is killed again and again, and the audit of what they left behind. */

import assert from "node:assert/strict";
import { CallError, type NamedScheduleRequest } from "../../src/client/baton-client.ts";
import { systemClock } from "../../src/platform/clock.ts";
import type { TestCluster } from "./cluster.ts";
import type { NodeProcess } from "./process-node.ts";
import { eventually } from "./wait.ts";

export interface KillsOptions {
  readonly kills: number;
  /** From 0 to below 1. */
  readonly chance: () => number;
  readonly onKill?: (n: number, leaderlessMs: number) => void;
}

export interface KillsReport {
  readonly kills: number;
  readonly tookMs: number;
  /** Of each kill: until another node said that it leads. */
  readonly leaderlessMs: readonly number[];
  readonly occurrences: number;
  /** From an instant to the commit of its occurrence. */
  readonly lateMs: readonly number[];
  /** Jobs that ran more than once, because the node that ran them was killed. */
  readonly rerun: number;
}

export const EVERY_MS = 1_000;
export const common = { task: "tick", missed: "run_all", missed_max: 10_000 } as const;
const SCHEDULES: readonly NamedScheduleRequest[] = [
  { ...common, name: "cron-utc", cron: "* * * * * *" },
  { ...common, name: "cron-zone", cron: "* * * * * *", zone: "Europe/Berlin" },
  { ...common, name: "every-a", every_ms: EVERY_MS },
  { ...common, name: "every-b", every_ms: EVERY_MS },
  { ...common, name: "every-c", every_ms: EVERY_MS },
];
/** What the audit must have seen behind the last kill. */
export const AFTERWARDS_MS = 2_500;

/** The cluster runs already, and all its nodes can lead. */
export async function killLeaders(cluster: TestCluster, options: KillsOptions): Promise<KillsReport> {
  const startedAt = systemClock.monotonic();
  const first = await putAll(cluster.nodes, SCHEDULES);
  const leaderlessMs: number[] = [];
  let starting: Promise<unknown> = Promise.resolve();
  for (let n = 1; n <= options.kills; n++) {
    // Every fourth time the successor dies as well, while it makes up for what was missed.
    const twice = n % 4 === 0;
    if (!twice) await starting;
    const leader = await cluster.leader();
    const { name } = leader;
    if (!twice) await systemClock.sleep(moment(n, options.chance));
    await cluster.kill(name);
    leaderlessMs.push((await cluster.successor(leader)).tookMs);
    options.onKill?.(n, leaderlessMs.at(-1)!);
    starting = Promise.all([starting, cluster.start(name)]);
    starting.catch(() => {}); // thrown where it is waited for
  }
  await starting;
  const end = systemClock.now() + AFTERWARDS_MS;
  await eventually(
    "the schedules to fire behind the last kill",
    async () => {
      const [row] = await cluster.sql("SELECT min(next_at)::float8 AS next FROM baton.schedule");
      return (row!["next"] as number) > end;
    },
    AFTERWARDS_MS + 20_000,
  );
  const [node] = cluster.nodes.values();
  for (const { name } of SCHEDULES) await node!.client.pauseSchedule(name);
  await node!.idle(30_000);
  const audit = await auditSchedules(cluster, first);
  return {
    ...audit,
    kills: options.kills,
    leaderlessMs,
    tookMs: systemClock.monotonic() - startedAt,
  };
}

/** With the first instant of each. Intervals count from their creation: apart, so that something fires every few hundred ms. */
export async function putAll(
  nodes: ReadonlyMap<string, NodeProcess>,
  schedules: readonly NamedScheduleRequest[],
): Promise<ReadonlyMap<string, number>> {
  const first = new Map<string, number>();
  for (const [at, schedule] of schedules.entries()) {
    await systemClock.sleep((EVERY_MS - 150) / schedules.length);
    const { client } = [...nodes.values()][at % nodes.size]!;
    const { next_at } = await eventually(`${schedule.name} to be taken`, () =>
      client.putSchedule(schedule).catch(unlessLeaderless),
    );
    first.set(schedule.name, Date.parse(next_at!));
  }
  return first;
}

/** On a busy machine the leader may change before the first kill. Nothing was stored where nobody led. */
function unlessLeaderless(error: unknown): null {
  if (error instanceof CallError && /^NOT?_LEADER$/.test(error.code)) return null;
  throw error;
}

/** How long to wait before the next kill: every second time until the cron schedules are being fired, else anything. */
export function moment(n: number, chance: () => number): number {
  if (n % 2 === 0) return chance() * EVERY_MS;
  return EVERY_MS - (systemClock.now() % EVERY_MS) + chance() * 25;
}

/** Every instant from the first to the last once, each with one job, each job completed, epochs never backwards. */
async function auditSchedules(
  cluster: TestCluster,
  first: ReadonlyMap<string, number>,
): Promise<Pick<KillsReport, "occurrences" | "lateMs" | "rerun">> {
  const rows = await cluster.sql(`
    SELECT o.schedule, count(*)::int AS noted, count(*) FILTER (WHERE o.fired)::int AS fired,
      min(o.at)::float8 AS first, max(o.at)::float8 AS last,
      count(DISTINCT o.at % ${EVERY_MS})::int AS phases,
      count(DISTINCT o.job)::int AS jobs,
      count(*) FILTER (WHERE j.run_at = o.at AND j.schedule = o.schedule)::int AS served,
      count(*) FILTER (WHERE d.status = 3)::int AS completed,
      count(*) FILTER (WHERE d.attempts > 1)::int AS rerun,
      (SELECT count(*)::int FROM baton.job every WHERE every.schedule = o.schedule) AS all_jobs,
      s.next_at::float8 AS next
    FROM baton.occurrence o JOIN baton.schedule s ON s.name = o.schedule
    LEFT JOIN baton.job j ON j.id = right(o.job, 36)::uuid
    LEFT JOIN baton.done d ON d.seq = j.seq
    GROUP BY o.schedule, s.next_at ORDER BY o.schedule`);
  assert.deepEqual(
    rows.map((row) => row["schedule"]),
    [...first.keys()].sort(),
    "every schedule has fired",
  );
  for (const row of rows) {
    const at = (key: string): number => row[key] as number;
    const name = row["schedule"] as string;
    const expected = (at("last") - first.get(name)!) / EVERY_MS + 1;
    const facts = `${name}: ${JSON.stringify(row)}`;
    assert.equal(at("first"), first.get(name), `the first occurrence is there; ${facts}`);
    assert.equal(at("phases"), 1, `all on their instants; ${facts}`);
    for (const key of ["noted", "fired", "jobs", "served", "completed", "all_jobs"]) {
      assert.equal(at(key), expected, `${key}: one for each of ${expected} instants; ${facts}`);
    }
  }
  const [order] = await cluster.sql(`
    SELECT count(*)::int AS backwards FROM (
      SELECT leader_epoch < lag(leader_epoch) OVER (PARTITION BY schedule ORDER BY at) AS back FROM baton.occurrence
    ) AS steps WHERE back`);
  assert.deepEqual(
    order,
    { backwards: 0 },
    "no occurrence was noted by an older term than the one before it",
  );
  const late = await cluster.sql("SELECT (noted_at - at)::float8 AS late FROM baton.occurrence");
  const sum = (key: string): number => rows.reduce((total, row) => total + (row[key] as number), 0);
  return { occurrences: sum("noted"), rerun: sum("rerun"), lateMs: late.map((row) => row["late"] as number) };
}
