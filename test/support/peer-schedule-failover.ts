/** Schedules of a cluster of peers that fire every second while whoever leads is killed, and the audit over all stores. */

import assert from "node:assert/strict";
import type { JobSummaryBody, NamedScheduleRequest } from "../../src/client/baton-client.ts";
import { systemClock } from "../../src/platform/clock.ts";
import type { PeerCluster } from "./peer-cluster.ts";
import { allVote, killLeader } from "./peer-failover.ts";
import { eventually } from "./wait.ts";
import { AFTERWARDS_MS, common, EVERY_MS, moment, putAll, type KillsOptions } from "./schedule-failover.ts";

export interface PeerKillsReport {
  readonly tookMs: number;
  /** Of each kill: until another node said that it leads. */
  readonly leaderlessMs: readonly number[];
  /** Instants, of all schedules. */
  readonly occurrences: number;
  /** From an instant to the creation of its job. */
  readonly lateMs: readonly number[];
  /** Jobs that ran more than once, because the node that ran them was killed. */
  readonly rerun: number;
  /** How many each node kept. */
  readonly kept: Readonly<Record<string, number>>;
}

const SCHEDULES: readonly NamedScheduleRequest[] = [
  { ...common, name: "cron", cron: "* * * * * *" },
  { ...common, name: "every-a", every_ms: EVERY_MS },
  { ...common, name: "every-b", every_ms: EVERY_MS },
];
const SETTLES_MS = 30_000;

/** The cluster runs already. Every fourth time the successor dies too, before the first one is back. */
export async function killPeerLeaders(cluster: PeerCluster, options: KillsOptions): Promise<PeerKillsReport> {
  const startedAt = systemClock.monotonic();
  await allVote(cluster);
  const first = await putAll(cluster.nodes, SCHEDULES);
  const leaderlessMs: number[] = [];
  let starting: Promise<unknown> = Promise.resolve();
  for (let n = 1; n <= options.kills; n++) {
    const twice = n % 4 === 0;
    if (!twice) {
      await starting;
      await cluster.gathered();
      await systemClock.sleep(moment(n, options.chance));
    }
    const killing = killLeader(cluster, 30_000);
    if (twice) await starting; // two of three are dead: nobody leads before one of them is back
    const { name, tookMs } = await killing;
    // Without a majority nobody can lead, and how long that took says nothing.
    if (!twice) leaderlessMs.push(tookMs);
    options.onKill?.(n, tookMs);
    starting = cluster.start(name);
    starting.catch(() => {}); // thrown where it is waited for
  }
  await starting;
  await cluster.gathered();
  const end = systemClock.now() + AFTERWARDS_MS;
  const [node] = cluster.nodes.values();
  await eventually(
    "the schedules to fire behind the last kill",
    async () => {
      const { schedules } = await node!.client.schedules();
      return schedules.every(({ next_at }) => next_at !== null && Date.parse(next_at) > end);
    },
    AFTERWARDS_MS + SETTLES_MS,
  );
  for (const { name } of SCHEDULES) await node!.client.pauseSchedule(name);
  for (const each of cluster.nodes.values()) await each.idle(SETTLES_MS);
  return { ...(await audit(cluster, first)), leaderlessMs, tookMs: systemClock.monotonic() - startedAt };
}

/**
 * Every instant from the first to the last has one job over all stores, and that one is completed. What a killed leader began
 * to place may still be on its way for a moment, so it is asked for until it holds; two jobs of one instant never go away.
 */
async function audit(cluster: PeerCluster, first: ReadonlyMap<string, number>) {
  const found = await eventually(
    "every instant to have its job",
    async () => {
      const jobs = (await cluster.everyJob({ task: "tick" })).filter(({ schedule }) => schedule !== null);
      return jobs.every(({ status }) => status === "completed") && gaps(jobs, first).length === 0
        ? jobs
        : null;
    },
    SETTLES_MS,
  ).catch(async (error: unknown) => {
    const jobs = await cluster.everyJob({ task: "tick" });
    const missing = gaps(jobs, first);
    const left = jobs.filter(({ status }) => status !== "completed");
    assert.fail(
      `${String(error)}: missing ${JSON.stringify(missing)}, not completed ${JSON.stringify(left)}`,
    );
  });
  const instants = new Map<string, JobSummaryBody>();
  for (const job of found) {
    const instant = `${job.schedule} ${job.run_at}`;
    const other = instants.get(instant);
    assert.ok(!other, `two jobs for ${instant}: ${JSON.stringify([other, job])}`);
    instants.set(instant, job);
  }
  const [node] = cluster.nodes.values();
  for (const { name } of SCHEDULES) {
    const { occurrences } = await node!.client.scheduleHistory(name, 1_000);
    const fired = occurrences.filter(({ outcome }) => outcome === "fired");
    assert.equal(fired.length, occurrences.length, "none was skipped");
    for (const { at, job_id } of occurrences) {
      const job = instants.get(`${name} ${at}`);
      assert.ok(job, `the history of ${name} tells of ${at}, for which there is no job`);
      assert.equal(job.job_id, job_id);
    }
    const epochs = occurrences.map(({ leader_epoch }) => leader_epoch);
    assert.deepEqual(
      epochs,
      epochs.toSorted((a, b) => b - a),
      "no older term noted a later instant",
    );
  }
  const kept: Record<string, number> = {};
  for (const { owner } of found) kept[owner] = (kept[owner] ?? 0) + 1;
  return {
    occurrences: found.length,
    lateMs: found.map(({ created_at, run_at }) => Date.parse(created_at) - Date.parse(run_at)),
    rerun: found.filter(({ attempts }) => attempts > 1).length,
    kept,
  };
}

/** Instants between the first and the last one of a schedule that no job is for. */
function gaps(jobs: readonly JobSummaryBody[], first: ReadonlyMap<string, number>): string[] {
  return [...first].flatMap(([name, from]) => {
    const at = new Set(
      jobs.filter(({ schedule }) => schedule === name).map(({ run_at }) => Date.parse(run_at)),
    );
    assert.ok(
      [...at].every((each) => (each - from) % EVERY_MS === 0 && each >= from),
      `${name} is off its instants`,
    );
    const last = Math.max(from, ...at);
    const missing: string[] = [];
    for (let each = from; each <= last; each += EVERY_MS)
      if (!at.has(each)) missing.push(`${name} ${new Date(each).toISOString()}`);
    return missing;
  });
}
