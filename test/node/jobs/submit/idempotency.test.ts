/** One key by every way to submit: over HTTP, with the client, in the process. The rules themselves: test/contract/store/idempotency.ts. */

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { BatonClient } from "../../../../src/client/baton-client.ts";
import { finished, nodeHere } from "../../../support/node-here.ts";
import { column } from "../../../support/columns.ts";

async function opened(t: TestContext) {
  const tasks = [
    { name: "work", run: () => "done" },
    {
      name: "fails",
      retry: { attempts: 1 },
      run: () => {
        throw new Error("no");
      },
    },
  ];
  const node = await nodeHere(t, { http: true, tasks });
  const client = new BatonClient({ url: node.url, discover: false });
  t.after(() => client.close());
  const post = async (path: string, body: object, headers: Record<string, string> = {}) => {
    const sent = { "content-type": "application/json", ...headers };
    const answer = await fetch(node.url + path, {
      method: "POST",
      body: JSON.stringify(body),
      headers: sent,
    });
    return { status: answer.status, body: (await answer.json()) as any };
  };
  return { node, client, post };
}

describe("an idempotency key", () => {
  it("gives the first job by every way, and says so", async (t) => {
    const { node, client, post } = await opened(t);
    const request = { task: "work", payload: { n: 1 }, idempotency_key: "k" };
    const first = await post("/jobs", request);
    assert.equal(first.body.existed, false);
    const { job_id: id } = first.body;
    const header = await post("/jobs", { task: "work", payload: { n: 1 } }, { "idempotency-key": "k" });
    const v1 = await post("/v1/jobs", request);
    const list = (await post("/jobs", [request, { task: "work" }])).body;
    const byClient = await client.submit(request);
    const byClientMany = await client.submitMany([request]);
    const answers = [header.body, v1.body, list[0], byClient, ...byClientMany];
    assert.deepEqual(column(answers, "job_id"), Array(5).fill(id));
    assert.deepEqual(column(answers, "existed"), Array(5).fill(true));
    assert.equal(list[1].existed, false);
    const embedded = await node.submit("work", { n: 1 }, { idempotencyKey: "k" });
    assert.deepEqual([embedded.id, embedded.existed], [id, true]);
  });

  it("with another payload is refused by every way with 409, a stable code, and the first job", async (t) => {
    const { node, client, post } = await opened(t);
    const { job_id: id } = await client.submit({ task: "work", payload: 1, idempotency_key: "k" });
    const other = { task: "work", payload: 2, idempotency_key: "k" };
    for (const path of ["/jobs", "/v1/jobs"]) {
      const { status, body } = await post(path, other);
      assert.deepEqual([status, body.error, body.job_id], [409, "IDEMPOTENCY_CONFLICT", id]);
      assert.equal(body.field, "idempotency_key");
      assert.ok(body.message.includes(id));
      const list = await post(path, [{ task: "work" }, other]);
      assert.deepEqual([list.status, list.body.field], [409, "[1].idempotency_key"]);
    }
    const refused = { code: "IDEMPOTENCY_CONFLICT" };
    await assert.rejects(client.submit(other), refused);
    await assert.rejects(node.submit("work", 2, { idempotencyKey: "k" }), {
      ...refused,
      details: { field: "idempotency_key", job_id: id },
    });
    assert.equal((await node.services.jobs.list({ limit: 10 })).jobs.length, 1);
  });

  it("of one caller refuses no other one whose job is stored at the same time", async (t) => {
    const { node, client } = await opened(t);
    await client.submit({ task: "work", payload: 1, idempotency_key: "k" });
    const asked = [
      node.submit("work", 3),
      node.submit("work", 2, { idempotencyKey: "k" }),
      node.submit("work", 4, { idempotencyKey: "own" }),
    ];
    const ended = await Promise.allSettled(asked);
    assert.deepEqual(column(ended, "status"), ["fulfilled", "rejected", "fulfilled"]);
  });

  it("makes a new job after a failure, and the failed one cannot be retried beside it", async (t) => {
    const { node, client, post } = await opened(t);
    const request = { task: "fails", payload: 1, idempotency_key: "k" };
    const first = await client.submit(request);
    await finished(node, first.job_id as never);
    const never = await client.submit({ ...request, key_reuse: "never" });
    assert.deepEqual([never.job_id, never.existed, never.status], [first.job_id, true, "failed"]);
    const again = await client.submit(request);
    assert.deepEqual([again.existed, again.job_id === first.job_id], [false, false]);
    const retried = await post(`/jobs/${first.job_id}/retry`, {});
    assert.deepEqual([retried.status, retried.body.error], [409, "JOB_NOT_RETRYABLE"]);
    assert.match(retried.body.message, /its idempotency key was used again/);
    const action = { action: "retry", ids: [first.job_id] };
    const bulk = (await post("/cluster/jobs/bulk", action)).body;
    assert.deepEqual(bulk.skipped, [
      { job_id: first.job_id, why: "its idempotency key was used again since" },
    ]);
  });

  it("is needed where its reuse is given, and a wrong reuse is named", async (t) => {
    const { node, post } = await opened(t);
    const alone = await post("/jobs", { task: "work", key_reuse: "never" });
    assert.deepEqual([alone.status, alone.body.field], [400, "key_reuse"]);
    const wrong = await post("/jobs", { task: "work", idempotency_key: "k", key_reuse: "always" });
    assert.equal(wrong.status, 400);
    assert.match(wrong.body.message, /"key_reuse" must be one of after_failure, never/);
    const here = node.submit("work", 1, { idempotencyKey: "k", keyReuse: "always" as never });
    await assert.rejects(here, { code: "BAD_REQUEST", message: /key_reuse must be after_failure or never/ });
  });
});
