import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { parseJobId } from "../../src/core/ids.ts";
import { freePort } from "../support/free-port.ts";
import { finished, nodeHere, resultOf, submit, temporaryDirectory } from "../support/node-here.ts";

describe("a node on the embedded store", () => {
  it("runs jobs, and has them still after a stop and another start", async (t) => {
    const settings = { STORE: "sqlite", DATA: await temporaryDirectory(t) };
    const echo = { name: "echo", run: (payload: unknown) => payload };
    const first = await nodeHere(t, { settings, tasks: [echo] });
    const done = await submit(first, "echo", { payload: { a: [1, null, "ü"] } });
    await finished(first, done);
    const unknown = await submit(first, "later", { payload: 1, allowUnknown: true });
    const delayed = await submit(first, "echo", { payload: 2, delayMs: 300 });
    assert.equal((await first.services.jobs.get(unknown))?.waitingFor?.code, "unknown_task");
    await first.stop();

    const second = await nodeHere(t, { settings, tasks: [echo, { ...echo, name: "later" }] });
    assert.deepEqual(await resultOf(second, done), { a: [1, null, "ü"] });
    assert.equal(await resultOf(second, unknown), 1);
    assert.equal(await resultOf(second, delayed), 2);
  });
});

describe("a node of a cluster of peers", () => {
  it("keeps a job that its own process got for a repeated key, also after a restart", async (t) => {
    const port = String(await freePort());
    const settings = {
      STORE: "sqlite",
      DATA: await temporaryDirectory(t),
      NODES: `here=http://127.0.0.1:${port}`,
      HTTP__PORT: port,
    };
    const first = await nodeHere(t, { settings, http: true });
    const options = { idempotencyKey: "k" };
    const [once, again] = [await first.submit("later", 1, options), await first.submit("later", 1, options)];
    assert.deepEqual([again.id, again.existed], [once.id, true]);
    await first.stop();
    const { placement, jobs } = (await nodeHere(t, { settings, http: true })).services;
    assert.equal(await placement!.retracted.takeBack(parseJobId(once.id)!.uuid, 1), "kept");
    assert.equal((await jobs.get(once.id))?.status, "queued");
  });
});
