import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { addedUp } from "../../../src/api/operations/cluster/cluster.ts";
import { BatonError } from "../../../src/core/errors.ts";
import { FakeNode, suiteApp } from "./fake-node.ts";

const node = new FakeNode();
const { call } = suiteApp(node);

describe("the cluster", () => {
  it("is told in numbers", async () => {
    node.join("node-b", { status: "draining" });
    node.join("node-c", { status: "dead", alive: false });
    node.join("node-d", { status: "joining" });
    node.notes = ["something to know"];
    node.minimumNodes = 3;
    const { status, body } = await call("GET", "/cluster");
    assert.equal(status, 200);
    assert.deepEqual(body, {
      name: "fakes",
      total_nodes: 4,
      active_nodes: 1,
      draining_nodes: 1,
      dead_nodes: 1,
      joining_nodes: 1,
      scheduler_leader: "node-a",
      minimum_nodes: 3,
      formed: true,
      notes: ["something to know"],
    });
  });

  it("has its nodes listed with all that is known of them", async () => {
    node.join("node-b", { status: "hibernating" });
    const { body } = await call("GET", "/cluster/nodes");
    assert.deepEqual(body.nodes[0], {
      name: "node-a",
      status: "active",
      last_seen: "2025-12-31T23:59:55.000Z",
      alive: true,
      incarnation: "inc-1234567",
      url: "http://127.0.0.1:4000",
      hostname: "localhost",
      address: "127.0.0.1",
      http_port: 4000,
      roles: ["gateway", "function", "worker", "scheduler"],
      capabilities: ["hello"],
      version: "0.0.0-test",
      started_at: "2025-12-31T23:59:55.000Z",
      load: { jobs: 2, connections: 3, cpu: 0.25, memory: 0.5, loop_lag_ms: 1.5, slots: null, owned: null },
      drain: null,
      reach: [],
      supervised: null,
    });
    assert.equal(body.nodes[1].status, "hibernating", "what a newer version says is passed on");
    assert.deepEqual((await call("GET", "/cluster/nodes/node-a")).body, body.nodes[0]);
  });

  it("shows who leads, and whether the lease still runs", async () => {
    const { body } = await call("GET", "/cluster/leaders");
    assert.deepEqual(body.leaders, [
      {
        role: "scheduler",
        node_id: "node-a",
        epoch: 7,
        acquired_at: "2025-12-31T23:59:00.000Z",
        lease_until: "2026-01-01T00:00:00.001Z",
        valid: true,
      },
      {
        role: "log_compactor",
        node_id: "node-a",
        epoch: 7,
        acquired_at: "2025-12-31T23:59:00.000Z",
        lease_until: "2026-01-01T00:00:00.000Z",
        valid: false,
      },
    ]);
  });

  it("has its samples told newest first, as many as were asked for", async () => {
    const jobs = { scheduled: 0, queued: 1, processing: 2, completed: 3, failed: 4, cancelled: 5 };
    const load = { cpu: 0.5, memory: 0.25, loopLagMsMax: 12.5, running: 2 };
    const sample = { leaderEpoch: 7, nodes: 3, jobs, finishedPerSecond: 1.5, load };
    node.samples = [2_000, 1_000].map((at) => ({ at, ...sample }));
    assert.equal((await call("GET", "/cluster/metrics")).body.samples.length, 2);
    assert.deepEqual((await call("GET", "/cluster/metrics?limit=1")).body.samples, [
      {
        at: "1970-01-01T00:00:02.000Z",
        leader_epoch: 7,
        nodes: 3,
        jobs,
        finished_per_second: 1.5,
        load: { cpu: 0.5, memory: 0.25, loop_lag_ms_max: 12.5, running: 2 },
      },
    ]);
    assert.equal((await call("GET", "/cluster/metrics?limit=0")).status, 400);
  });

  it("has the samples of nodes that count for themselves added up, those of about the same time", () => {
    const none = { scheduled: 0, processing: 0, completed: 0, failed: 0, cancelled: 0 };
    const load = { cpu: 0, memory: 0, loop_lag_ms_max: 0, running: 0 };
    const sample = (second: number, queued: number) => ({
      at: new Date(second * 1_000).toISOString(),
      leader_epoch: 1,
      nodes: 3,
      jobs: { ...none, queued },
      finished_per_second: 0.1,
      load,
    });
    const own = [sample(100, 1), sample(90, 2), sample(80, 3)];
    const other = [sample(106, 10), sample(96, 20), sample(70, 30)];
    const sums = addedUp([own, other, []]);
    assert.deepEqual(
      sums.map(({ jobs }) => jobs.queued),
      [21, 22, 3],
    );
    assert.equal(sums[0]!.finished_per_second, 0.2);
    assert.deepEqual(addedUp([own]), own);
  });
});

describe("the jobs of the cluster", () => {
  it("are those of this node where each keeps its own store", async () => {
    node.join("node-b");
    node.add();
    const { body } = await call("GET", "/cluster/jobs");
    assert.equal(body.items.length, 1);
    assert.deepEqual(body.nodes, [{ name: "node-a", reachable: true, job_count: 1 }]);
    assert.equal(body.next_cursor, null);
  });

  it("are everybody's where the store is shared, with who can be reached", async () => {
    node.guarantees = { name: "pg", durability: "power loss", shared: true, keepsTokenFile: false };
    node.join("node-b", { status: "dead", alive: false });
    const theirs = { owner: node.others[0]!.name };
    node.add();
    node.add("failed", theirs);
    node.add("failed", theirs);
    const { body } = await call("GET", "/cluster/jobs?limit=2");
    assert.equal(body.items.length, 2);
    assert.deepEqual(body.nodes, [
      { name: "node-a", reachable: true, job_count: 0 },
      { name: "node-b", reachable: false, job_count: 2 },
    ]);
    const rest = await call("GET", `/cluster/jobs?limit=2&cursor=${body.next_cursor}`);
    assert.deepEqual(rest.body.nodes[0], { name: "node-a", reachable: true, job_count: 1 });
    assert.equal((await call("GET", "/cluster/jobs?status=failed")).body.items.length, 2);
  });
});

describe("a node", () => {
  it("that does not answer may be draining: the caller is to ask again", async (t) => {
    t.mock.method(node.cluster, "ask", () => {
      throw new BatonError("NODE_UNREACHABLE", "node-b did not answer, and may be draining");
    });
    const { status, body, headers } = await call("POST", "/cluster/nodes/node-b/drain");
    assert.deepEqual([status, headers["retry-after"]], [503, "1"]);
    assert.match(body.message, /may be draining/);
  });

  it("is asked through any other to drain and to resume", async () => {
    node.join("node-b");
    const drain = await call("POST", "/cluster/nodes/node-b/drain");
    assert.deepEqual([drain.status, drain.body], [202, { name: "node-b", asked: "drain" }]);
    const resume = await call("POST", "/cluster/nodes/node-b/resume");
    assert.deepEqual([resume.status, resume.body], [202, { name: "node-b", asked: "resume" }]);
    assert.deepEqual(node.asked, [
      ["node-b", "drain"],
      ["node-b", "resume"],
    ]);
  });

  it("that nobody knows is not found, and those that are known are named", async () => {
    node.join("node-b");
    for (const [method, path] of [
      ["GET", "/cluster/nodes/node-x"],
      ["POST", "/cluster/nodes/node-x/drain"],
      ["POST", "/cluster/nodes/node-x/resume"],
    ] as const) {
      const { status, body } = await call(method, path);
      assert.deepEqual(
        [status, body.error, body.message, body.nodes],
        [404, "NOT_FOUND", "there is no node node-x; there are node-a, node-b", ["node-a", "node-b"]],
        path,
      );
    }
    assert.equal((await call("GET", "/cluster/nodes/-x")).status, 400);
  });

  it("that is dead is not asked", async () => {
    node.join("node-b", { status: "dead", alive: false });
    const { status, body } = await call("POST", "/cluster/nodes/node-b/drain");
    assert.deepEqual([status, body.status], [404, "dead"]);
    assert.match(body.message, /node-b is dead/);
  });
});

describe("calling a function", () => {
  it("runs the task with the body as its payload and answers the result", async () => {
    node.ending = { status: "completed", result: { language: "de" } };
    const { status, body } = await call("POST", "/functions/identify-language?timeout_ms=250", {
      text: "ja",
    });
    assert.equal(status, 200);
    assert.deepEqual(Object.keys(body), ["job_id", "result"]);
    assert.deepEqual(body.result, { language: "de" });
    const { job } = node.kept.get(body.job_id)!;
    assert.deepEqual([job.task, job.payload, job.timeoutMs], ["identify-language", '{"text":"ja"}', 250]);
  });

  it("takes any JSON for a payload, or none, and waits as long as the node is set up to", async () => {
    for (const [payload, stored] of [
      ["[1]", "[1]"],
      ['"x"', '"x"'],
      ["0", "0"],
      ["false", "false"],
      [undefined, "null"],
    ] as const) {
      const { status, body } = await call("POST", "/functions/hello", payload);
      assert.equal(status, 200, String(payload));
      const { job } = node.kept.get(body.job_id)!;
      assert.deepEqual([job.payload, job.timeoutMs], [stored, 30_000]);
    }
  });

  it("answers 422 with the job's error when it failed or was cancelled", async () => {
    node.ending = { status: "failed", result: null };
    const failed = await call("POST", "/functions/hello", {});
    assert.deepEqual(
      [failed.status, failed.body.error, failed.body.message, failed.body.status],
      [422, "FUNCTION_FAILED", "hello failed: it broke", "failed"],
    );
    assert.deepEqual(failed.body.job_error, { code: "ERROR", message: "it broke" });
    assert.ok(node.kept.has(failed.body.job_id));
    assert.equal(failed.headers["retry-after"], undefined);
    node.ending = { status: "cancelled", result: null };
    assert.match((await call("POST", "/functions/hello", {})).body.message, /^hello was cancelled/);
  });

  it("answers 202 with the job's address when it takes longer", async () => {
    node.ending = null;
    const { status, body, headers } = await call("POST", "/functions/hello", {});
    assert.deepEqual([status, body.status], [202, "queued"]);
    assert.equal(headers["location"], `/jobs/${body.job_id}`);
    assert.equal((await call("GET", headers["location"])).body.job_id, body.job_id);
  });

  it("tells of a wrong wait or name", async () => {
    for (const [path, field] of [
      ["/functions/hello?timeout_ms=0", "timeout_ms"],
      ["/functions/hello?timeout_ms=soon", "timeout_ms"],
      ["/functions/-", "task"],
    ] as const) {
      const { status, body } = await call("POST", path, {});
      assert.deepEqual([status, body.field], [400, field], path);
    }
  });
});
