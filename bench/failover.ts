/**
 * npm run bench:failover -- [--kills N] [--pauses N] [--stops N] [--json FILE]
 *
 * Three nodes on one PostgreSQL (fsync on), all at the defaults, and what it takes until work goes on when one of them is
 * killed, paused or told to stop. Beside it, in the same rounds, the floor: a bare process that is blocked in
 * pg_advisory_lock while another bare process that has the lock is killed.
 */

import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { writeFileSync } from "node:fs";
import type { TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { roleOf, TestCluster } from "../test/support/cluster.ts";
import { eventually, type NodeProcess } from "../test/support/process-node.ts";
import { percentile } from "./statistics.ts";

const HOLDER = fileURLToPath(new URL("failover-floor.ts", import.meta.url));
const NAMES = ["ada", "bob", "cyd"];

const { values } = parseArgs({
  options: {
    kills: { type: "string", default: "50" },
    pauses: { type: "string", default: "5" },
    stops: { type: "string", default: "10" },
    json: { type: "string" },
  },
});
const count = (text: string): number => Math.max(0, Math.floor(Number(text)) || 0);

const say = (text: string): void => void process.stderr.write(`${text}\n`);
const cleanups: (() => unknown)[] = [];
const context = { after: (step: () => unknown) => void cleanups.push(step) } as unknown as TestContext;
for (const [signal, code] of [
  ["SIGINT", 130],
  ["SIGTERM", 143],
] as const)
  process.once(signal, () => void cleanUp().finally(() => process.exit(code)));

const times = {
  killed: [] as number[],
  floor: [] as number[],
  rerun: [] as number[],
  paused: [] as number[],
  stopped: [] as number[],
};
try {
  await run();
  report();
} finally {
  await cleanUp();
}
process.exit(0);

async function run(): Promise<void> {
  const cluster = await TestCluster.open(context, {
    settings: { LOG__LEVEL: "error", JOBS__CRASHES_MAX: "1000" },
  });
  say("three nodes start …");
  await cluster.startAll(...NAMES);
  for (let n = 1; n <= count(values.kills); n++) {
    times.floor.push(await floor(cluster.url));
    const { leader, rerun } = await kill(cluster);
    times.killed.push(leader);
    times.rerun.push(rerun);
    say(
      `kill ${n}: leader ${leader.toFixed(0)} ms (floor ${times.floor.at(-1)!.toFixed(0)}), its job again ${rerun.toFixed(0)} ms`,
    );
  }
  for (let n = 1; n <= count(values.stops); n++) {
    times.stopped.push(await stop(cluster));
    say(`stop ${n}: ${times.stopped.at(-1)!.toFixed(0)} ms`);
  }
  for (let n = 1; n <= count(values.pauses); n++) {
    times.paused.push(await pause(cluster));
    say(`pause ${n}: ${times.paused.at(-1)!.toFixed(0)} ms`);
  }
}

/** kill -9 of the leader, which runs a job: until another leads, and until that job runs on another node. */
async function kill(cluster: TestCluster): Promise<{ leader: number; rerun: number }> {
  const { name, node, epoch } = await cluster.leader();
  const job_id = await jobOf(node, name);
  const at = performance.now();
  process.kill(node.pid, "SIGKILL");
  cluster.forget(name);
  const others = [...cluster.nodes.values()];
  const leader = (await nextLeader(others, epoch)) - at;
  const rerun = await eventually("the job to run again", async () => {
    const { status, job_epoch } = await others[0]!.client.job(job_id);
    return status === "processing" && job_epoch > 1 ? performance.now() - at : null;
  });
  await others[0]!.client.cancel(job_id);
  await again(cluster, name);
  return { leader, rerun };
}

/** A job that runs on this very node; another one may have been faster, and keeps running what it took. */
async function jobOf(node: NodeProcess, name: string): Promise<string> {
  for (;;) {
    const { job_id } = await node.client.submit({ task: "hold", payload: null });
    const { worker } = await node.processing(job_id);
    if (worker === name) return job_id;
    await node.client.cancel(job_id);
  }
}

async function stop(cluster: TestCluster): Promise<number> {
  const { name, node, epoch } = await cluster.leader();
  const at = performance.now();
  const exited = node.terminate();
  cluster.forget(name);
  const took = (await nextLeader([...cluster.nodes.values()], epoch)) - at;
  await exited;
  await again(cluster, name);
  return took;
}

async function pause(cluster: TestCluster): Promise<number> {
  const { name, node, epoch } = await cluster.leader();
  const at = performance.now();
  process.kill(node.pid, "SIGSTOP");
  cluster.forget(name);
  const took = (await nextLeader([...cluster.nodes.values()], epoch)) - at;
  process.kill(node.pid, "SIGCONT");
  cluster.nodes.set(name, node);
  await everybodyActive(cluster);
  return took;
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

async function floor(url: string): Promise<number> {
  const holder = await bare(url);
  const standby = bare(url);
  await sleep(150); // until it is blocked
  const at = performance.now();
  holder.kill("SIGKILL");
  const taken = await standby;
  const took = performance.now() - at;
  taken.kill("SIGKILL");
  return took;
}

/** A process that has taken the lock. */
function bare(url: string): Promise<ChildProcess> {
  const child = spawn(process.execPath, [HOLDER, url], { stdio: ["ignore", "pipe", "inherit"] });
  cleanups.push(() => child.kill("SIGKILL"));
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.stdout.once("data", () => resolve(child));
  });
}

function report(): void {
  const line = (what: string, list: readonly number[], target: string): string[] => {
    const at = (share: number): string =>
      list.length === 0 ? "–" : `${percentile(list, share).toFixed(0)} ms`;
    return [what, String(list.length), at(0.5), at(0.99), at(1), target];
  };
  const rows = [
    ["event", "times", "p50", "p99", "max", "target"],
    line("kill -9 of the leader: another leads", times.killed, "p50 < 100 ms, p99 < 500 ms"),
    line("  floor: blocked in pg_advisory_lock", times.floor, ""),
    line("kill -9 of a node: its job runs again", times.rerun, "< 1,000 ms"),
    line("SIGTERM of the leader: another leads", times.stopped, "p99 < 500 ms"),
    line("SIGSTOP of the leader: another leads", times.paused, "< 5,500 ms (lease 5 s)"),
  ];
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  for (const row of rows) {
    console.log(
      row
        .map((cell, at) => (at === 0 || at === 5 ? cell.padEnd(widths[at]!) : cell.padStart(widths[at]!)))
        .join("  ")
        .trimEnd(),
    );
  }
  if (values.json) writeFileSync(values.json, `${JSON.stringify(times, null, 2)}\n`);
}

async function cleanUp(): Promise<void> {
  for (const step of cleanups.splice(0).reverse()) await step();
}
