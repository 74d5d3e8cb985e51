/** What agents without work cost the leader: they ask as `baton agent` does, and are told that there is nothing. */

import { request, type Agent } from "undici";
import { processCpuUs } from "./server-cpu.ts";

export const IDLE_AGENTS = 500;
/** As src/agent/job-taker.ts and heart.ts: a long poll, and a beat when nothing was heard from the leader for two of them. */
const POLL_MS = 50_000;
const BEAT_MS = 10_000;
/** Code that ran a few times only is slow, and its compiler works beside it: a leader has seen more than that. */
const WARM_ROUNDS = 20;

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

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

/** Shares of a core: of the leader without them and with them; and how many requests they made in a second. */
export async function idleAgents(
  node: Node,
  agent: Agent,
  measuredMs: number,
): Promise<{ alone: number; waited: number; served: number }> {
  let requests = 0;
  const sign = (n: number) => ({ agent: `idle-${n}`, capabilities: ["nothing"], version: "1.0.0" });
  const poll = async (n: number, ms: number): Promise<void> => {
    requests++;
    const request_id = crypto.randomUUID();
    const wish = { ...sign(n), max_tasks: 10, timeout_ms: Math.round(ms), request_id };
    const { status } = await post(agent, node, "/v1/leases", wish);
    if (status !== 204) throw new Error(`a poll was answered with ${status}`);
  };
  const beat = async (n: number): Promise<void> => {
    requests++;
    await post(agent, node, "/v1/agents/heartbeat", { ...sign(n), running: 0 });
  };
  const all = Array.from({ length: IDLE_AGENTS }, (_, n) => n);
  for (let round = 0; round < WARM_ROUNDS; round++) {
    await Promise.all(all.map((n) => poll(n, 20 + Math.random() * 200)));
    await Promise.all(all.map(beat));
  }
  const share = async (): Promise<number> => {
    const before = processCpuUs(node.pid);
    const startedAt = performance.now();
    await sleep(measuredMs);
    return (processCpuUs(node.pid) - before) / 1_000 / (performance.now() - startedAt);
  };
  await sleep(2_000);
  const alone = await share();

  let over = false;
  const asking = all.map(async (n) => {
    // As if each had come at a time of its own.
    for (let first = true; !over; first = false) await poll(n, POLL_MS * (first ? Math.random() : 1));
  });
  const beating = all.map(async (n) => {
    await sleep(BEAT_MS * Math.random());
    for (; !over; await sleep(BEAT_MS)) await beat(n);
  });
  await sleep(3_000);
  const before = requests;
  const waited = await share();
  const served = (requests - before) / (measuredMs / 1_000);
  over = true;
  // Nobody waits for those who wait: the leader hears that they left.
  void Promise.allSettled([...asking, ...beating]);
  return { alone, waited, served };
}
