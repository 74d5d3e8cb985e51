import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import { ControllerCalls } from "../../support/controller-calls.ts";
import { suiteScope } from "../../support/node-cleanup.ts";
import { nodeHere } from "../../support/node-here.ts";

const ID = "here-0198c0de-0000-7000-8000-000000000000";
const LEASE = { agent: "ada", capabilities: ["work"], timeout_ms: 0 };
const RESULT = { lease_id: "agent:ada/x", job_id: ID, job_epoch: 1, leader_epoch: 1, status: "succeeded" };
const { status: _status, ...RUN } = RESULT;

describe("a body for the controller that is not right", () => {
  const scope = suiteScope();
  let v1: ControllerCalls;
  before(async () => {
    const node = await nodeHere(scope, { http: true, settings: { WORKER__CONCURRENCY: "0" } });
    v1 = new ControllerCalls(node);
  });

  const wrong: [string, unknown, string | undefined, RegExp][] = [
    ["/v1/leases", { agent: "ada" }, "capabilities", /missing; it must be a list of the names/],
    ["/v1/leases", { ...LEASE, capabilities: [] }, "capabilities", /1 to 1000 items/],
    ["/v1/leases", { ...LEASE, capabilities: "work" }, "capabilities", /list of the names.*not the string/],
    ["/v1/leases", { ...LEASE, capabilities: { ops: ["work"] } }, "capabilities", /not an object/],
    [
      "/v1/leases",
      { ...LEASE, capabilities: ["work", 5] },
      "capabilities[1]",
      /must be a name.*the number 5/,
    ],
    ["/v1/leases", { ...LEASE, capabilities: ["a b"] }, "capabilities[0]", /must be a name/],
    ["/v1/leases", { ...LEASE, capabilities: ["a".repeat(129)] }, "capabilities[0]", /1 to 128/],
    ["/v1/leases", { capabilities: ["work"] }, "agent", /missing; it must be the name of an agent/],
    ["/v1/leases", { ...LEASE, agent: "a/b" }, "agent", /name of an agent/],
    ["/v1/leases", { ...LEASE, agent: "a\r\nb" }, "agent", /name of an agent/],
    ["/v1/leases", { ...LEASE, max_tasks: 0 }, "max_tasks", /1 to 64/],
    ["/v1/leases", { ...LEASE, max_tasks: 65 }, "max_tasks", /1 to 64/],
    ["/v1/leases", { ...LEASE, max_tasks: "5" }, "max_tasks", /1 to 64.*the string "5"/],
    ["/v1/leases", { ...LEASE, timeout_ms: -1 }, "timeout_ms", /0 to 120000/],
    ["/v1/leases", { ...LEASE, timeout_ms: 120_001 }, "timeout_ms", /0 to 120000/],
    ["/v1/leases", { ...LEASE, timeuot_ms: 1 }, "timeuot_ms", /did you mean "timeout_ms"/],
    ["/v1/leases", { ...LEASE, queues: ["-"] }, "queues[0]", /must be a name/],
    ["/v1/leases", { ...LEASE, labels: { a: 1 } }, "labels.a", /not the number 1/],
    ["/v1/leases", { ...LEASE, leader_epoch: "1" }, "leader_epoch", /whole number/],
    ["/v1/leases", { ...LEASE, request_id: "a/b" }, "request_id", /1 to 64 letters/],
    ["/v1/leases", { ...LEASE, request_id: "" }, "request_id", /1 to 64 letters/],
    ["/v1/leases", { ...LEASE, unanswered: "r1" }, "unanswered", /list of at most 64 request_ids/],
    ["/v1/leases", { ...LEASE, unanswered: ["r 1"] }, "unanswered[0]", /1 to 64 letters/],
    ["/v1/agents/heartbeat", { agent: "ada", unanswered: [5] }, "unanswered[0]", /not the number 5/],
    ["/v1/leases", null, undefined, /body/],
    ["/v1/leases/renew", { agent: "ada" }, "lease_id", /lease_id of an answer/],
    ["/v1/leases/renew", { agent: "ada", lease_id: "" }, "lease_id", /lease_id of an answer/],
    ["/v1/results", {}, "lease_id", /missing/],
    ["/v1/results", { ...RESULT, status: "done" }, "status", /one of succeeded, failed, cancelled, released/],
    ["/v1/results", { ...RESULT, status: "succeded" }, "status", /did you mean "succeeded"/],
    ["/v1/results", { ...RESULT, job_id: "x" }, "job_id", /a job id/],
    ["/v1/results", { ...RESULT, job_epoch: "1" }, "job_epoch", /whole number/],
    ["/v1/results", { ...RESULT, leader_epoch: 1.5 }, "leader_epoch", /whole number/],
    ["/v1/results", { ...RESULT, error: "broke" }, "error", /object/],
    ["/v1/results", { ...RESULT, error: {} }, "error.message", /missing/],
    ["/v1/results", [RESULT, { ...RESULT, status: 5 }], "[1].status", /not the number 5/],
    ["/v1/results", [], undefined, /1 to 1000 items/],
    ["/v1/logs", { ...RUN, lines: [{ level: "info" }] }, "lines[0].message", /missing/],
    ["/v1/logs", { ...RUN, lines: [{ message: "x", level: "loud" }] }, "lines[0].level", /one of debug/],
    ["/v1/logs", { ...RUN, lines: [{ message: "x", at: "now" }] }, "lines[0].at", /ISO-8601/],
    ["/v1/logs", { ...RUN, progress: { percent: 101 } }, "progress.percent", /0 to 100/],
    ["/v1/jobs", {}, "task", /missing/],
    ["/v1/jobs", { task: "a", job_id: "x" }, "job_id", /a job id/],
    ["/v1/jobs", [{ task: "a" }, { task: "b", priority: 500 }], "[1].priority", /-100 to 100/],
    ["/v1/jobs", { task: "a", run_at: "2026-01-01T00:00:00Z", delay_ms: 1 }, "delay_ms", /not both/],
    ["/v1/agents/heartbeat", {}, "agent", /missing/],
    ["/v1/agents/heartbeat", { agent: "ada", running: -1 }, "running", /from 0/],
    ["/v1/agents/heartbeat", { agent: "ada", capabilities: [] }, "capabilities", /1 to 1000/],
  ];
  for (const [path, body, field, message] of wrong) {
    it(`is refused with its field and the remedy: ${path} ${JSON.stringify(body).slice(0, 60)}`, async () => {
      const told = await v1.post(path, body);
      assert.deepEqual([told.status, told.body.error, told.body.field], [400, "BAD_REQUEST", field]);
      assert.match(told.body.message, message);
      assert.equal(told.headers.get("x-baton-leader-epoch"), "1");
    });
  }

  it("is neither stored nor noted", async () => {
    assert.deepEqual((await v1.get("/v1/jobs")).body.jobs, []);
    assert.deepEqual((await v1.get("/v1/agents")).body.agents, []);
  });

  it("is refused in a path, a query or a header too", async () => {
    const cases: [string, string, string][] = [
      ["DELETE", "/v1/agents/a%2Fb", "agent_name"],
      ["DELETE", "/v1/agents/-", "agent_name"],
      ["GET", "/v1/agents?include_removed=yes", "include_removed"],
      ["GET", "/v1/jobs?stauts=failed", "stauts"],
      ["GET", "/v1/jobs?limit=0", "limit"],
      ["GET", "/v1/events?since=x", "since"],
      ["GET", "/v1/jobs/x", "id"],
    ];
    for (const [method, path, field] of cases) {
      const told = await v1.call(method, path);
      assert.deepEqual([told.status, told.body.field], [400, field], path);
    }
    assert.equal((await v1.call("GET", "/v1/leases")).status, 405);
    assert.equal((await v1.call("GET", "/v1/nothing")).status, 404);
  });
});
