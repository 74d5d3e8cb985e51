/** What a leader serves to agents over HTTP, what agents that wait cost it, and how soon the next leader gives a lease. */

import { setTimeout as sleep } from "node:timers/promises";
import { Agent } from "undici";
import { TestCluster } from "../../test/support/cluster.ts";
import { atEnd } from "../../test/support/node-cleanup.ts";
import { IDLE_AGENTS, idleAgents, post } from "../idle-agents.ts";
import { withScope } from "../run-scope.ts";
import { absolute, type Row, type Scenario } from "../scenario.ts";

const RATE_MIN = 5_000;
const IDLE_PERCENT_MAX = 2;
const TAKEOVER_S_MAX = 1.5;

const BATCH = 64;
const LOOPS = 4;

const CONTROLLER = { ROLES: "gateway,scheduler" };

export const controller: Scenario = {
  name: "controller",
  about:
    "no-op jobs leased and completed over HTTP, 64 at a time; 500 agents that wait; kill -9 of the leader",
  only: "sqlite",
  run: ({ quick, say }) =>
    withScope(async (scope) => {
      const agent = new Agent({ connections: IDLE_AGENTS + 64, headersTimeout: 120_000 });
      atEnd(scope, () => agent.destroy());
      const cluster = await TestCluster.open(scope, { server: { durable: true } });
      await cluster.startAll("one", "two");
      const rate = await serve(cluster, agent, quick ? 5_000 : 50_000);
      say(`${rate.toFixed(0)} jobs/s`);
      const { name, node: leading } = await cluster.leader();
      const nodes = { leader: leading, standby: cluster.others(name)[0]! };
      const { leader, standby } = await idleAgents(nodes, agent, quick ? 10_000 : 50_000);
      const times = await takeovers(cluster, agent, quick ? 3 : 20);
      say(`leases again after ${times.map((time) => time.toFixed(2)).join(", ")} s`);
      const p99 = times.toSorted((a, b) => a - b)[Math.ceil(times.length * 0.99) - 1]!;
      const share = (figure: string, of: number, most: number | null): Row =>
        absolute(figure, "% core", of * 100, most);
      return [
        {
          ...absolute("jobs leased and completed over HTTP", "jobs/s", rate, null),
          target: { text: `≥ ${RATE_MIN}/s`, met: rate >= RATE_MIN },
        },
        share(`${IDLE_AGENTS} agents that wait`, leader.waited - leader.alone, IDLE_PERCENT_MAX),
        share("  the leader without them", leader.alone, null),
        share("  the leader with them", leader.waited, IDLE_PERCENT_MAX),
        share("  a standby without them", standby.alone, null),
        share("  a standby with them, which they ask who leads", standby.waited, null),
        absolute("kill -9 of the leader to the next lease, p99", "s", p99, TAKEOVER_S_MAX),
      ];
    }),
};

interface Leased {
  readonly lease_id: string;
  readonly leader_epoch: number;
  readonly tasks: readonly { readonly job_id: string; readonly job_epoch: number }[];
}

async function submit(cluster: TestCluster, agent: Agent, count: number): Promise<void> {
  const { node } = await cluster.leader();
  for (let left = count; left > 0; left -= 1_000) {
    const jobs = Array.from({ length: Math.min(left, 1_000) }, () => ({ task: "bench", payload: null }));
    const { status, body } = await post(agent, node, "/v1/jobs", jobs);
    if (status !== 200) throw new Error(`submits were answered with ${status} ${JSON.stringify(body)}`);
  }
}

async function serve(cluster: TestCluster, agent: Agent, count: number): Promise<number> {
  const { node } = await cluster.leader();
  await submit(cluster, agent, count);
  let done = 0;
  const before = performance.now();
  const loop = async (n: number): Promise<void> => {
    while (done < count) {
      const wish = { agent: `agent-${n}`, capabilities: ["bench"], max_tasks: BATCH, timeout_ms: 100 };
      const { status, body } = await post(agent, node, "/v1/leases", wish);
      if (status === 204) continue;
      if (status !== 200) throw new Error(`a lease was answered with ${status} ${JSON.stringify(body)}`);
      const { lease_id, leader_epoch, tasks } = body as Leased;
      const results = tasks.map(({ job_id, job_epoch }) => ({
        lease_id,
        leader_epoch,
        job_id,
        job_epoch,
        status: "succeeded",
        result: null,
      }));
      const answer = await post(agent, node, "/v1/results", results);
      if (answer.status !== 200) throw new Error(`results were answered with ${JSON.stringify(answer)}`);
      done += tasks.length;
    }
  };
  await Promise.all(Array.from({ length: LOOPS }, (_, n) => loop(n)));
  return count / ((performance.now() - before) / 1_000);
}

/** From the kill to the first lease that another node gives, asked for as fast as it answers. */
async function takeovers(cluster: TestCluster, agent: Agent, kills: number): Promise<number[]> {
  const times: number[] = [];
  await submit(cluster, agent, kills * 4);
  for (let kill = 0; kill < kills; kill++) {
    const { name, node } = await cluster.leader();
    cluster.forget(name);
    const next = [...cluster.nodes.values()][0]!;
    const before = performance.now();
    await node.kill();
    for (;;) {
      const wish = { agent: "waits", capabilities: ["bench"], timeout_ms: 0 };
      const { status } = await post(agent, next, "/v1/leases", wish);
      if (status === 200) break;
      await sleep(5);
    }
    times.push((performance.now() - before) / 1_000);
    await cluster.start(name, CONTROLLER);
    // A session that is younger than the server's memory of the dead proves nothing yet.
    await sleep(1_500);
  }
  return times;
}
