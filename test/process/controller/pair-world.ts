/** Two node-controllers with agents that work, and what is asked of them. */

import assert from "node:assert/strict";
import { BatonClient, type JobBody } from "../../../src/client/baton-client.ts";
import { LONG_LEASES, QUICK } from "../../support/cluster.ts";
import type { Scope } from "../../support/node-cleanup.ts";
import type { SharedPostgres } from "../../support/postgres-server.ts";
import { eventually } from "../../support/wait.ts";
import { agentOf, ControllerProcess, type WorldOptions } from "./world.ts";

/** A leader, and a standby whose agent works. Leases outlast a test: nothing may wait for one to run out. */
export async function workingPair(
  t: Scope,
  server: SharedPostgres,
  options: Pick<WorldOptions, "agent" | "settings"> = {},
): Promise<{ leader: ControllerProcess; standby: ControllerProcess }> {
  const url = await server.createDatabase();
  const settings = { ...QUICK, ...LONG_LEASES, STORE: url, AGENTS__LEASE: "60s", ...options.settings };
  const { agent = "real" } = options;
  const nodes = await Promise.all(
    ["ada", "bob"].map((name) => ControllerProcess.start(t, { name, agent, settings })),
  );
  return eventually("a leader and a standby", async () => {
    const leader = nodes.find((node) => node.report()?.role === "LEADER");
    const standby = nodes.find((node) => {
      const report = node.report();
      return report?.role === "STANDBY" && agentOf(report).state === "running";
    });
    return leader && standby ? { leader, standby } : null;
  });
}

export async function submit(at: ControllerProcess, jobs: readonly object[]): Promise<string[]> {
  const headers = { "content-type": "application/json" };
  const body = JSON.stringify(jobs);
  const answer = await fetch(`${at.report()!.url}/v1/jobs`, { method: "POST", headers, body });
  assert.equal(answer.status, 200);
  return ((await answer.json()) as { job_id: string }[]).map(({ job_id }) => job_id);
}

export async function jobWhen(
  at: ControllerProcess,
  id: string,
  holds: (job: JobBody) => boolean,
): Promise<JobBody> {
  await using client = new BatonClient({ url: at.report()!.url!, timeoutMs: 10_000 });
  return await eventually(
    `job ${id}`,
    async () => {
      const job = await client.job(id);
      return holds(job) ? job : null;
    },
    20_000,
  );
}

/** Until the handler has begun, by its own word. */
export async function holding(at: ControllerProcess, id: string): Promise<void> {
  await using client = new BatonClient({ url: at.report()!.url!, timeoutMs: 10_000 });
  await eventually("its line", async () => (await client.logs(id)).logs.length > 0);
}
