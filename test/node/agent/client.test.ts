import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BatonClient, CallError, type BatonClientOptions } from "../../../src/client/baton-client.ts";
import { FakeControllers } from "../../support/fake-controller.ts";
import { atEnd, type Scope } from "../../support/node-cleanup.ts";
import { nodeHere } from "../../support/node-here.ts";
import { columns } from "../../support/columns.ts";

function clientOf(t: Scope, url: string, options: BatonClientOptions = {}): BatonClient {
  const client = new BatonClient({ url, ...options });
  atEnd(t, () => client.close());
  return client;
}

describe("the client of the controller API", () => {
  it("leases a job, keeps it, speaks of it, ends it, and may say so again", async (t) => {
    const node = await nodeHere(t, { http: true });
    const { controller } = clientOf(t, node.url);
    const agent = { agent: "hand", capabilities: ["by-hand"] };
    assert.equal(await controller.lease({ ...agent, timeout_ms: 0 }), null);
    await controller.submit({ task: "by-hand", payload: { n: 1 } });
    const lease = await controller.lease({ ...agent, timeout_ms: 1_000 });
    assert.ok(lease);
    const { lease_id } = lease;
    const [{ job_id, job_epoch, payload }] = lease.tasks as [(typeof lease.tasks)[number]];
    assert.deepEqual([payload, job_epoch], [{ n: 1 }, 1]);
    const { leader_epoch } = await controller.renew({ agent: "hand", lease_id });
    const run = { lease_id, job_id, job_epoch, leader_epoch };
    assert.deepEqual(await controller.logs({ ...run, lines: [{ message: "working" }] }), { accepted: 1 });
    await controller.heartbeat({ agent: "hand", running: 1 });
    const { agents } = await controller.agents();
    assert.deepEqual(columns(agents, "name", "capabilities"), [["hand", ["by-hand"]]]);
    const old = controller.result({ ...run, leader_epoch: leader_epoch - 1, status: "succeeded" });
    await assert.rejects(old, { code: "STALE_EPOCH", status: 409 });
    const first = await controller.result({ ...run, status: "succeeded", result: 42 });
    assert.deepEqual(await controller.results([{ ...run, status: "succeeded", result: 42 }]), [first]);
    assert.deepEqual([first.accepted, (await controller.job(job_id)).status], [true, "completed"]);
    assert.deepEqual(await controller.removeAgent("hand"), { ok: true, deleted: true });
  });

  it("without retries is told who leads, or that nobody knows", async (t) => {
    const controllers = await FakeControllers.open(t, { nodes: 2 });
    const [leader, standby] = controllers.nodes;
    const { controller } = clientOf(t, standby!.url, { retry: false });
    const refused = (told: RegExp) => (error: unknown) => {
      assert.ok(error instanceof CallError);
      assert.deepEqual([error.code, error.status, error.outcome], ["NOT_LEADER", 409, "none"]);
      assert.match(error.message, told);
      return true;
    };
    await assert.rejects(controller.heartbeat({ agent: "a" }), refused(new RegExp(leader!.url)));
    controllers.lead(null);
    await assert.rejects(controller.heartbeat({ agent: "a" }), refused(/it is not known which one does/));
  });
});
