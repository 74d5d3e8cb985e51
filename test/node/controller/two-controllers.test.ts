/** Two controllers on one real database: who does not lead refuses, who led is fenced, and no work is lost in between. */

import assert from "node:assert/strict";
import { before, describe, it, type TestContext } from "node:test";
import type { Task } from "../../../src/jobs/tasks/task.ts";
import type { BatonNode } from "../../../src/node/baton-node.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { QUICK } from "../../support/cluster.ts";
import { ControllerCalls, type Leased } from "../../support/controller-calls.ts";
import { suiteScope } from "../../support/node-cleanup.ts";
import { nodeHere } from "../../support/node-here.ts";
import { PostgresServer, type SharedPostgres } from "../../support/postgres-server.ts";
import { eventually } from "../../support/wait.ts";

interface Pair {
  readonly leader: BatonNode;
  readonly standby: BatonNode;
  readonly atLeader: ControllerCalls;
  readonly atStandby: ControllerCalls;
  readonly url: string;
  readonly epoch: number;
}

let server: SharedPostgres;
const scope = suiteScope();
before(async () => {
  server = await PostgresServer.shared();
  scope.after(() => server.stop());
});

async function pair(
  t: TestContext,
  settings: Record<string, string> = {},
  tasks: readonly Task[] = [],
): Promise<Pair> {
  const url = await server.createDatabase();
  // Nobody dies here without a word, so that the lease may be one that a busy machine keeps.
  const patient = { ...QUICK, LEADER__LEASE: "5s", LEADER__MARGIN: "1250ms" };
  const common = { ...patient, STORE: url, WORKER__CONCURRENCY: "0", ...settings };
  const open = (name: string): Promise<BatonNode> =>
    nodeHere(t, { http: true, settings: { ...common, NAME: name }, tasks });
  const leader = await open("one");
  await leads(leader);
  const standby = await open("two");
  const calls = { atLeader: new ControllerCalls(leader), atStandby: new ControllerCalls(standby) };
  await eventually(
    "the standby knows",
    async () => (await calls.atStandby.get("/role")).body.leader_id === "one",
  );
  const { epoch } = leader.services.leadership.held()!;
  return { leader, standby, url, epoch, ...calls };
}

async function leads(node: BatonNode): Promise<void> {
  await eventually("a leader", () => node.services.leadership.held() !== null);
}

async function renewed(v1: ControllerCalls, lease: Leased): Promise<Leased> {
  const { status, body } = await v1.post("/v1/leases/renew", { agent: "ada", lease_id: lease.lease_id });
  assert.equal(status, 200, JSON.stringify(body));
  return { ...lease, leader_epoch: body.leader_epoch };
}

describe("two controllers on one database", () => {
  it("a job that was submitted at the standby by the other way is leased to an agent that waits at the leader", async (t) => {
    const { atLeader, atStandby } = await pair(t);
    const waiting = atLeader.ask();
    await eventually("it waits", async () => (await atLeader.get("/v1/agents")).body.agents.length > 0);
    const { body } = await atStandby.post("/jobs", { task: "work" });
    assert.equal((await waiting).body.tasks[0].job_id, body.job_id);
  });

  it("a takeover loses no work: the lease is renewed at the new leader, and the result posted under its epoch", async (t) => {
    const { leader, standby, atLeader, atStandby, epoch } = await pair(t);
    const id = await atLeader.submit();
    const lease = await atLeader.lease();
    assert.equal(lease.leader_epoch, epoch);
    const done = await (async () => {
      await atLeader.submit({ task: "quick" });
      const quick = await atLeader.lease({ capabilities: ["quick"] });
      return { quick, answer: await atLeader.result(quick) };
    })();
    await leader.stop({ hurry: true });
    await leads(standby);
    const next = standby.services.leadership.held()!.epoch;
    assert.ok(next > epoch);
    const old = await atStandby.result(lease);
    assert.deepEqual(
      [old.status, old.body.error, old.body.field, old.body.leader_epoch],
      [409, "STALE_EPOCH", "leader_epoch", next],
    );
    const current = await renewed(atStandby, lease);
    assert.equal(current.leader_epoch, next);
    const failed = await atStandby.result(current, { status: "failed", error: { message: "later" } });
    assert.deepEqual([failed.status, failed.body.status, failed.body.leader_epoch], [200, "scheduled", next]);
    const job = await atStandby.job(id);
    assert.deepEqual([job.leader_epoch, job.failures, job.crashes, job.job_epoch], [next, 1, 0, 1]);

    // Whose answer was lost with the old leader asks the new one, and hears the same.
    const again = await atStandby.result(await renewed(atStandby, done.quick));
    assert.deepEqual([again.status, again.body], [200, done.answer.body]);
  });

  it("leases to agents also where jobs are pushed to the workers of nodes", async (t) => {
    const { atLeader, atStandby } = await pair(t, { DISPATCH__MODE: "push" });
    const waiting = atLeader.ask();
    await systemClock.sleep(200);
    const { body } = await atStandby.post("/jobs", { task: "work" });
    const lease = (await waiting).body;
    assert.equal(lease.tasks[0].job_id, body.job_id);
    assert.equal((await atLeader.result(lease)).body.status, "completed");
    const id = await atLeader.submit();
    assert.equal((await atLeader.lease()).tasks[0]!.job_id, id);
  });
});
