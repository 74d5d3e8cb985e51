/** 9.1: a standby rejects mutating endpoints with 409 NOT_LEADER. */

import assert from "node:assert/strict";
import { it } from "node:test";
import { eventually } from "../support/wait.ts";
import type { Suite } from "./suite.ts";

const METHODS = ["post", "put", "patch", "delete"];

export function refusals({ open }: Suite): void {
  it("9.1 a standby rejects every mutating endpoint with 409 and exactly six fields, and stores nothing", async (t) => {
    const cluster = await open(t, "calm");
    const { leader, standby } = await cluster.settled();
    const [atLeader, atStandby] = [cluster.at(leader.name), cluster.at(standby)];
    await atLeader.submit({ task: "other" });
    const held = await atLeader.lease({ agent: "ada", capabilities: ["other"] });
    const { job_id, job_epoch } = held.tasks[0]!;
    const run = { lease_id: held.lease_id, job_id, job_epoch, leader_epoch: leader.epoch };
    const result = { ...run, agent: "ada", status: "succeeded" };
    const writes: readonly [method: string, path: string, route: string, body?: unknown][] = [
      ["POST", "/v1/jobs", "/v1/jobs", { task: "work" }],
      ["POST", "/v1/jobs", "/v1/jobs", [{ task: "work" }, { task: "work" }]],
      ["POST", "/v1/leases", "/v1/leases", { agent: "eve", capabilities: ["work"], timeout_ms: 5_000 }],
      ["POST", "/v1/leases/renew", "/v1/leases/renew", { agent: "ada", lease_id: held.lease_id }],
      ["POST", "/v1/results", "/v1/results", result],
      ["POST", "/v1/results", "/v1/results", [result]],
      ["POST", "/v1/logs", "/v1/logs", { ...run, lines: [{ message: "late" }] }],
      ["POST", "/v1/agents/heartbeat", "/v1/agents/heartbeat", { agent: "eve", capabilities: ["work"] }],
      ["DELETE", "/v1/agents/ada", "/v1/agents/{agent_name}"],
    ];

    const { paths } = (await atStandby.get("/openapi.json")).body;
    const routes = Object.entries(paths as Record<string, object>).filter(([path]) =>
      path.startsWith("/v1/"),
    );
    const declared = routes.flatMap(([path, of]) =>
      METHODS.filter((method) => method in of).map((method) => `${method.toUpperCase()} ${path}`),
    );
    const tried = writes.map(([method, , route]) => `${method} ${route}`);
    assert.deepEqual([...new Set(tried)].sort(), declared.sort(), "a mutating endpoint is not tried here");

    const agents = async (): Promise<string[]> =>
      (await atLeader.get("/v1/agents")).body.agents.map(({ name }: { name: string }) => name);
    const [before, known] = [await cluster.stored(), await agents()];
    // A node is known before it listens; its address comes with a later heartbeat.
    await eventually("the leader's address to be known", async () => {
      const { body } = await atStandby.call("DELETE", "/v1/agents/nobody");
      return (body as { leader_url: string | null }).leader_url;
    });
    for (const [method, path, , body] of writes) {
      const told = await atStandby.call(method, path, body);
      assert.equal(told.status, 409, `${method} ${path}: ${JSON.stringify(told.body)}`);
      assert.deepEqual(told.body, {
        error: "NOT_LEADER",
        leader_id: leader.name,
        leader_url: leader.node.url,
        leader_epoch: leader.epoch,
        node_id: standby,
        role: "STANDBY",
      });
    }
    assert.deepEqual(await cluster.stored(), before);
    assert.deepEqual(await agents(), known);

    // What was refused here is taken where the refusal says.
    const { status, body } = await atLeader.post("/v1/results", result);
    assert.deepEqual([status, body.accepted, body.status], [200, true, "completed"], JSON.stringify(body));
  });
}
