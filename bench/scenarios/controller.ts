/** What a leader serves to agents over HTTP, what agents that wait cost it, and how soon the next leader gives a lease. */

import { Agent } from "undici";
import { TestCluster } from "../../test/support/cluster.ts";
import type { Scope } from "../../test/support/node-cleanup.ts";
import { IDLE_AGENTS, idleAgents, post } from "../idle-agents.ts";
import type { Row, Scenario } from "../scenario.ts";

const RATE_MIN = 5_000;
const IDLE_SHARE_MAX = 0.02;
const TAKEOVER_S_MAX = 1.5;

const BATCH = 64;
const LOOPS = 4;

const CONTROLLER = { ROLES: "gateway,scheduler" };

export const controller: Scenario = {
  name: "controller",
  about:
    "no-op jobs leased and completed over HTTP, 64 at a time; 500 agents that wait; kill -9 of the leader",
  only: "sqlite",
  async run(bench) {
    const cleanups: (() => unknown)[] = [];
    const scope: Scope = { after: (step) => void cleanups.push(step as () => unknown) };
    const agent = new Agent({ connections: IDLE_AGENTS + 64, headersTimeout: 120_000 });
    cleanups.push(() => agent.destroy());
    try {
      const cluster = await TestCluster.open(scope, { server: { durable: true } });
      await cluster.startAll("one", "two");
      const rate = await serve(cluster, agent, bench.quick ? 5_000 : 50_000);
      bench.say(`${rate.toFixed(0)} jobs/s`);
      const { node: leading } = await cluster.leader();
      const standing = [...cluster.nodes.values()].find((node) => node !== leading)!;
      const idle = await idleAgents(
        { leader: leading, standby: standing },
        agent,
        bench.quick ? 10_000 : 50_000,
      );
      const { alone, waited } = idle.leader;
      const share = waited - alone;
      bench.say(
        `an idle leader takes ${percent(alone)} of a core, ${percent(waited)} with ${IDLE_AGENTS} agents`,
      );
      const times = await takeovers(cluster, agent, bench.quick ? 3 : 20);
      const p99 = times.toSorted((a, b) => a - b)[Math.ceil(times.length * 0.99) - 1]!;
      bench.say(`leases again after ${times.map((time) => time.toFixed(2)).join(", ")} s`);
      return [
        row("jobs leased and completed over HTTP", "jobs/s", rate, `≥ ${RATE_MIN}/s`, rate >= RATE_MIN),
        row(`${IDLE_AGENTS} agents that wait`, "% core", share * 100, "< 2 %", share < IDLE_SHARE_MAX),
        told("  the leader without them", alone),
        row("  the leader with them", "% core", waited * 100, "< 2 %", waited < IDLE_SHARE_MAX),
        told("  a standby without them", idle.standby.alone),
        told("  a standby with them, which they ask who leads", idle.standby.waited),
        row(
          "kill -9 of the leader to the next lease, p99",
          "s",
          p99,
          `< ${TAKEOVER_S_MAX} s`,
          p99 < TAKEOVER_S_MAX,
        ),
      ];
    } finally {
      for (const step of cleanups.reverse()) await step();
    }
  },
};

function row(figure: string, unit: string, ours: number, text: string, met: boolean): Row {
  return { figure, unit, ours, floor: null, ratio: null, target: { text, met } };
}

function told(figure: string, share: number): Row {
  return { ...row(figure, "% core", share * 100, "", true), target: null };
}

function percent(share: number): string {
  return `${(share * 100).toFixed(2)} %`;
}

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
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    times.push((performance.now() - before) / 1_000);
    await cluster.start(name, CONTROLLER);
    // A session that is younger than the server's memory of the dead proves nothing yet.
    await new Promise((resolve) => setTimeout(resolve, 1_500));
  }
  return times;
}
