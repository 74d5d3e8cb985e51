/** What a node does by its roles. Who answers callers, and what waits until a cluster is complete: test/unit/http/admission, test/node/start. */

import assert from "node:assert/strict";
import { it, type TestContext } from "node:test";
import { nodeHere, resultOf, submit } from "../support/node-here.ts";

const open = (t: TestContext, roles: string) =>
  nodeHere(t, { http: true, settings: { ROLES: roles }, tasks: [{ name: "work", run: () => "done" }] });

async function call(url: string): Promise<{ status: number; result: unknown }> {
  const answer = await fetch(`${url}/functions/work?timeout_ms=200`, { method: "POST" });
  return { status: answer.status, result: ((await answer.json()) as { result?: unknown }).result };
}

it("a worker runs jobs and no functions, and a node for functions runs nothing else", async (t) => {
  const worker = await open(t, "gateway,scheduler,worker");
  assert.equal((await call(worker.url)).status, 202);
  assert.equal(await resultOf(worker, await submit(worker, "work")), "done");
  const functions = await open(t, "gateway,scheduler,function");
  const id = await submit(functions, "work");
  for (let calls = 0; calls < 3; calls++)
    assert.deepEqual(await call(functions.url), { status: 200, result: "done" });
  assert.equal((await functions.services.jobs.get(id))?.status, "queued");
});
