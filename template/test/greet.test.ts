import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { testNode } from "batonjs/testing";
import greet from "../tasks/greet.ts";

describe("greet", () => {
  it("greets by name", async () => {
    await using baton = await testNode({ tasks: [greet] });
    const job = await baton.submit(greet, { name: "Ada" });
    assert.deepEqual(await job.result(), { greeting: "Hello, Ada!" });
  });

  it("refuses a payload without a name", async () => {
    await using baton = await testNode({ tasks: [greet] });
    await assert.rejects(baton.submit(greet, { name: "" }), { code: "BAD_PAYLOAD" });
  });

  it("greets everybody at eight in the morning", async () => {
    await using baton = await testNode({ tasks: [greet], now: new Date("2026-07-01T07:59:00Z") });
    await baton.advance("1m");
    const [job] = await baton.jobs();
    assert.equal(job?.schedule, "good-morning");
    assert.deepEqual(job?.result, { greeting: "Hello, everybody!" });
  });
});
