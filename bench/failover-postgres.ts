/**
 * Three nodes on one PostgreSQL (fsync on), all at the defaults, and what it takes until work goes on when one of them is
 * killed, paused or told to stop. Beside it, in the same rounds, the floor: a bare process that is blocked in
 * pg_advisory_lock while another bare process that has the lock is killed.
 */

import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { roleOf, TestCluster } from "../test/support/cluster.ts";
import { atEnd, type Scope } from "../test/support/node-cleanup.ts";
import type { NodeProcess } from "../test/support/process-node.ts";
import { eventually } from "../test/support/wait.ts";
import { repeat, type Failover } from "./failover-event.ts";

const HOLDER = fileURLToPath(new URL("failover-floor.ts", import.meta.url));
const NAMES = ["ada", "bob", "cyd"];

export const postgresFailover: Failover = async (options) => {
  const { kills, stops, pauses, scope, say } = options;
  const cluster = await TestCluster.open(scope, {
    settings: { LOG__LEVEL: "error", JOBS__CRASHES_MAX: "1000" },
    server: { durable: true },
  });
  say("three nodes on one PostgreSQL start …");
  await cluster.startAll(...NAMES);
  const killed: number[] = [];
  const bare: number[] = [];
  const rerun: number[] = [];
  for (let n = 1; n <= kills; n++) {
    bare.push(await floor(scope, cluster.url));
    const took = await kill(cluster);
    killed.push(took.leader);
    rerun.push(took.rerun);
    say(
      `  kill ${n} of ${kills}: leader ${took.leader.toFixed(0)} ms (floor ${bare.at(-1)!.toFixed(0)}), its job again ${took.rerun.toFixed(0)} ms`,
    );
  }
  return [
    {
      what: "kill -9 of the leader: another leads",
      tookMs: killed,
      target: "p50 < 100 ms, p99 < 500 ms",
    },
    { what: "  floor: blocked in pg_advisory_lock", tookMs: bare },
    { what: "kill -9 of a node: its job runs again", tookMs: rerun, target: "< 1,000 ms" },
    {
      what: "SIGTERM of the leader: another leads",
      tookMs: await repeat(stops, "stop", options, () => stop(cluster)),
      target: "p99 < 500 ms",
    },
    {
      what: "SIGSTOP of the leader: another leads",
      tookMs: await repeat(pauses, "pause", options, () => pause(cluster)),
      target: "< 5,500 ms (lease 5 s)",
    },
  ];
};

/** kill -9 of the leader, which runs a job: until another leads, and until that job runs on another node. */
async function kill(cluster: TestCluster): Promise<{ leader: number; rerun: number }> {
  const { name } = await cluster.leader();
  const job_id = await cluster.begunBy(name, { task: "hold", payload: null });
  const { at, leader } = await strike(cluster, "SIGKILL");
  const other = [...cluster.nodes.values()][0]!;
  const rerun = await eventually("the job to run again", async () => {
    const { status, job_epoch } = await other.client.job(job_id);
    return status === "processing" && job_epoch > 1 ? performance.now() - at : null;
  });
  await other.client.cancel(job_id);
  await again(cluster, name);
  return { leader, rerun };
}

async function stop(cluster: TestCluster): Promise<number> {
  const { name, node, leader } = await strike(cluster, "SIGTERM");
  await node.exited;
  await again(cluster, name);
  return leader;
}

async function pause(cluster: TestCluster): Promise<number> {
  const { name, node, leader } = await strike(cluster, "SIGSTOP");
  node.signal("SIGCONT");
  cluster.nodes.set(name, node);
  await everybodyActive(cluster);
  return leader;
}

/** Whoever leads gets the signal; until another node says that it leads. */
async function strike(cluster: TestCluster, signal: NodeJS.Signals) {
  const { name, node, epoch } = await cluster.leader();
  const at = performance.now();
  node.signal(signal);
  cluster.forget(name);
  return { name, node, at, leader: (await nextLeader([...cluster.nodes.values()], epoch)) - at };
}

async function again(cluster: TestCluster, name: string): Promise<void> {
  await cluster.start(name);
  await everybodyActive(cluster);
}

/** When somebody else first says that it leads. Asked without a pause: the question takes a millisecond. */
async function nextLeader(nodes: readonly NodeProcess[], epoch: number): Promise<number> {
  for (;;) {
    const roles = await Promise.all(nodes.map((node) => roleOf(node)));
    if (roles.some((role) => role?.role === "LEADER" && role.leader_epoch! > epoch)) return performance.now();
  }
}

async function everybodyActive(cluster: TestCluster): Promise<void> {
  await eventually("all nodes to be active", async () => {
    const [row] = await cluster.sql("SELECT count(*)::int AS n FROM baton.node WHERE status = 'active'");
    return row!["n"] === NAMES.length || null;
  });
  await cluster.leader();
  await sleep(200);
}

async function floor(scope: Scope, url: string): Promise<number> {
  const holder = await bareProcess(scope, url);
  const standby = bareProcess(scope, url);
  await sleep(150); // until it is blocked
  const at = performance.now();
  holder.kill("SIGKILL");
  const taken = await standby;
  const took = performance.now() - at;
  taken.kill("SIGKILL");
  return took;
}

/** A process that has taken the lock. */
function bareProcess(scope: Scope, url: string): Promise<ChildProcess> {
  const child = spawn(process.execPath, [HOLDER, url], { stdio: ["ignore", "pipe", "inherit"] });
  atEnd(scope, () => child.kill("SIGKILL"));
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.stdout.once("data", () => resolve(child));
  });
}
