import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { defineTask } from "../../../../src/jobs/tasks/task.ts";
import { createLog } from "../../../../src/platform/log.ts";
import { nodeHere, jobWhen } from "../../../support/node-here.ts";

const TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

function kept() {
  const lines: Record<string, unknown>[] = [];
  const destination = {
    write: (text: string) => void lines.push(JSON.parse(text) as Record<string, unknown>),
  };
  return { lines, log: createLog({ level: "debug", format: "json", name: "ada", destination }) };
}

const deaf = defineTask({ name: "deaf", run: () => new Promise<void>(() => {}) });

describe("the log of a node", () => {
  it("says in every line which node speaks, in which role and under which epoch", async (t) => {
    const { lines, log } = kept();
    const node = await nodeHere(t, { log, settings: { NAME: "ada" } });
    await node.stop();
    assert.ok(lines.length > 3, `${lines.length}`);
    for (const line of lines) {
      assert.equal(line["node"], "ada", JSON.stringify(line));
      assert.match(String(line["role"]), /^(?:LEADER|STANDBY|DRAINING)$/);
      assert.equal(typeof line["epoch"], "number");
    }
    const leading = lines.find(({ msg, leaderRole }) => msg === "leading" && leaderRole === "scheduler")!;
    assert.deepEqual([leading["epoch"], leading["leader"]], [1, "ada"]);
    assert.ok(lines.some(({ role, epoch }) => role === "LEADER" && epoch === 1));
  });

  it("names the job, and its trace if it has one", async (t) => {
    const { lines, log } = kept();
    const settings = { DRAIN__TIMEOUT: "40ms", DRAIN__CLEANUP: "20ms" };
    const node = await nodeHere(t, { log, tasks: [deaf], settings });
    const [answer] = await node.services.jobs.submit([{ task: "deaf" }], { trace: TRACE });
    await jobWhen(node, answer!.id, ({ status }) => status === "processing");
    await node.services.jobs.cancel(answer!.id, null);
    await jobWhen(node, answer!.id, ({ status }) => status === "cancelled");
    const line = lines.find(({ msg }) => String(msg).includes("was given up"))!;
    assert.deepEqual([line["jobId"], line["traceId"]], [answer!.id, TRACE.slice(3, 35)]);
  });

  it("names the request that failed, and its trace", async (t) => {
    const { lines, log } = kept();
    const node = await nodeHere(t, { log, http: true });
    Object.assign(node.services, { jobs: { get: () => Promise.reject(new Error("a fault of ours")) } });
    const id = `here-${"0".repeat(8)}-0000-7000-8000-${"0".repeat(12)}`;
    const answer = await fetch(`${node.url}/jobs/${id}`, {
      headers: { "x-request-id": "r-7", traceparent: TRACE },
    });
    assert.equal(answer.status, 500);
    const line = lines.find(({ msg }) => msg === "a request failed")!;
    assert.deepEqual([line["reqId"], line["traceId"]], ["r-7", TRACE.slice(3, 35)]);
  });
});
