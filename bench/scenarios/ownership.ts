/** What it takes to move ten thousand running jobs from one owner to others, and what it costs to own them. */

import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { PostgresServer } from "../../test/support/postgres-server.ts";
import { TestCluster } from "../../test/support/cluster.ts";
import { baton } from "../../test/support/process.ts";
import { atEnd, type Scope } from "../../test/support/node-cleanup.ts";
import { eventually } from "../../test/support/wait.ts";
import { withScope } from "../run-scope.ts";
import { absolute, type Scenario } from "../scenario.ts";

const DRAIN_S_MAX = 15;
const CRASH_S_MAX = 10;
const RSS_MB_MAX = 150;
/** For ten thousand jobs on a busy machine. */
const WITHIN_MS = 120_000;
/** A node gives back what a burst has left behind when it has been at rest for some seconds. */
const CALM_MS = 12_000;

const COORDINATOR = { ROLES: "gateway,scheduler", REBALANCE__ENABLED: "false" };

export const ownership: Scenario = {
  name: "ownership",
  about:
    "ten thousand running jobs that one node owns, on PostgreSQL and Redis: drained to two peers, and after kill -9",
  only: "sqlite",
  run: ({ quick, say }) =>
    withScope(async (scope) => {
      const jobs = quick ? 1_000 : 10_000;
      const server = await PostgresServer.start({ durable: true });
      atEnd(scope, () => server.stop());
      const drained = await drain(scope, server, jobs, say);
      const crashed = await crash(scope, server, jobs, say);
      const { seconds, rssMb } = drained;
      return [
        absolute(`${jobs} owned jobs drained to two peers`, "s", seconds, DRAIN_S_MAX, drained.exact),
        absolute(`memory of a node that owns ${jobs}`, "MB", rssMb, RSS_MB_MAX),
        absolute(`owner of ${jobs} killed: p99 owned again`, "s", crashed.p99, CRASH_S_MAX, crashed.exact),
      ];
    }),
};

/** One owner of all that runs on one worker; the peers come afterwards, so that it owns everything. */
async function ownerOfAll(scope: Scope, server: PostgresServer, jobs: number, say: (text: string) => void) {
  const cluster = await TestCluster.open(scope, { on: server, redis: {} });
  const owner = await cluster.start("owner", COORDINATOR);
  const worker = await cluster.start("worker", {
    ROLES: "gateway,worker",
    WORKER__CONCURRENCY: String(jobs),
  });
  for (let left = jobs; left > 0; left -= 1_000) {
    await worker.client.submitMany(
      Array.from({ length: Math.min(left, 1_000) }, () => ({ task: "hold", timeout_ms: 3_600_000 })),
    );
  }
  await eventually("all to be owned", async () => (await owned(cluster, "owner")) === jobs, WITHIN_MS);
  say(`${jobs} jobs run and are owned`);
  await sleep(CALM_MS);
  const rssMb = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${owner.pid}/status`, "utf8"))![1]) / 1_024;
  await cluster.start("peer-1", COORDINATOR);
  await cluster.start("peer-2", COORDINATOR);
  return { cluster, owner, worker, rssMb };
}

async function drain(scope: Scope, server: PostgresServer, jobs: number, say: (text: string) => void) {
  const { cluster, worker, rssMb } = await ownerOfAll(scope, server, jobs, say);
  const before = performance.now();
  const { code, out } = await baton(worker, "node", "drain", "owner", "--timeout", "60s");
  const seconds = (performance.now() - before) / 1_000;
  say(out.trim());
  const [one, two] = [await owned(cluster, "peer-1"), await owned(cluster, "peer-2")];
  say(`exit ${code} after ${seconds.toFixed(1)} s; the peers own ${one} and ${two}`);
  const exact = code === 0 && one + two === jobs && (await undisturbed(cluster)) === jobs;
  await endAll(cluster);
  return { seconds, rssMb, exact };
}

async function crash(scope: Scope, server: PostgresServer, jobs: number, say: (text: string) => void) {
  const { cluster, owner } = await ownerOfAll(scope, server, jobs, say);
  const before = performance.now();
  await owner.kill();
  const seen: { readonly at: number; readonly jobs: number }[] = [];
  const look = async (): Promise<boolean> => {
    const sum = (await owned(cluster, "peer-1")) + (await owned(cluster, "peer-2"));
    seen.push({ at: (performance.now() - before) / 1_000, jobs: sum });
    return sum === jobs;
  };
  await eventually("all to be owned again", look, WITHIN_MS);
  const p99 = seen.find((look) => look.jobs >= jobs * 0.99)!.at;
  say(`99 % owned again after ${p99.toFixed(2)} s, all after ${seen.at(-1)!.at.toFixed(2)} s`);
  const exact = (await undisturbed(cluster)) === jobs;
  await endAll(cluster);
  return { p99, exact };
}

/** Running jobs of assignments that this node owns, by the database. */
async function owned(cluster: TestCluster, name: string): Promise<number> {
  const [found] = await cluster.sql(
    `SELECT coalesce(sum(l.n), 0)::int AS n FROM baton.live l JOIN baton.assignment a ON a.id = l.assignment
     WHERE l.started_at IS NOT NULL AND a.owner_name = '${name}'`,
  );
  return found!["n"] as number;
}

/** Jobs that are still in their first run. */
async function undisturbed(cluster: TestCluster): Promise<number> {
  const [found] = await cluster.sql(
    "SELECT coalesce(sum(n), 0)::int AS n FROM baton.live WHERE started_at IS NOT NULL AND job_epoch = 1",
  );
  return found!["n"] as number;
}

async function endAll(cluster: TestCluster): Promise<void> {
  await Promise.all([...cluster.nodes.values()].map((node) => node.kill()));
}
