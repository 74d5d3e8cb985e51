/** What agents without work cost the leader: they ask as `baton agent` does, and are told that there is nothing. */

import { setTimeout as sleep } from "node:timers/promises";
import { request, type Agent } from "undici";
import { coreShares } from "./server-cpu.ts";

export const IDLE_AGENTS = 500;
/** As src/agent/lease-poller.ts and heartbeater.ts: a long poll at the leader, and a look at another node whether that one still leads. */
const POLL_MS = 50_000;
const LOOK_MS = 10_000;
/** Code that ran a few times only is slow, and its compiler works beside it: a leader has seen more than that. */
const WARM_ROUNDS = 20;

/** After a storm the memory is tidied for a while, which has nothing to do with those who wait. */
const SETTLE_MS = 15_000;

interface Node {
  readonly url: string;
  readonly pid: number;
}

export async function post(
  agent: Agent,
  node: { readonly url: string },
  path: string,
  body: unknown,
): Promise<{ status: number; body: unknown }> {
  const { statusCode, body: answer } = await request(`${node.url}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
    dispatcher: agent,
  });
  const text = await answer.text();
  return { status: statusCode, body: text === "" ? null : (JSON.parse(text) as unknown) };
}

/** Shares of a core. */
export interface Cost {
  readonly alone: number;
  readonly waited: number;
}

/** What the two take without the agents and with them. */
export async function idleAgents(
  nodes: { readonly leader: Node; readonly standby: Node },
  agent: Agent,
  measuredMs: number,
): Promise<{ leader: Cost; standby: Cost }> {
  const { leader, standby } = nodes;
  const sign = (n: number) => ({ agent: `idle-${n}`, capabilities: ["nothing"], version: "1.0.0" });
  const poll = async (n: number, ms: number): Promise<void> => {
    const request_id = crypto.randomUUID();
    const wish = { ...sign(n), max_tasks: 10, timeout_ms: Math.round(ms), request_id };
    const { status } = await post(agent, leader, "/v1/leases", wish);
    if (status !== 204) throw new Error(`a poll was answered with ${status}`);
  };
  const beat = (n: number) => post(agent, leader, "/v1/agents/heartbeat", { ...sign(n), running: 0 });
  const look = async (): Promise<void> => {
    const { body } = await request(`${standby.url}/role`, { dispatcher: agent });
    await body.text();
  };
  const all = Array.from({ length: IDLE_AGENTS }, (_, n) => n);
  for (let round = 0; round < WARM_ROUNDS; round++) {
    await Promise.all(all.map((n) => poll(n, 20 + Math.random() * 200)));
    await Promise.all(all.map((n) => Promise.all([beat(n), look()])));
  }
  const shares = (): Promise<number[]> => coreShares([leader.pid, standby.pid], measuredMs);
  await sleep(SETTLE_MS);
  const alone = await shares();

  let over = false;
  const asking = all.map(async (n) => {
    // As if each had come at a time of its own.
    for (let first = true; !over; first = false) await poll(n, POLL_MS * (first ? Math.random() : 1));
  });
  const looking = all.map(async () => {
    await sleep(LOOK_MS * Math.random());
    for (; !over; await sleep(LOOK_MS)) await look();
  });
  await sleep(3_000);
  const waited = await shares();
  over = true;
  // Nobody waits for those who wait: the leader hears that they left.
  void Promise.allSettled([...asking, ...looking]);
  const cost = (at: number): Cost => ({ alone: alone[at]!, waited: waited[at]! });
  return { leader: cost(0), standby: cost(1) };
}
