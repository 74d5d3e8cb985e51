import assert from "node:assert/strict";
import { request } from "node:http";
import { before, describe, it } from "node:test";
import type { BatonNode } from "../../../src/node/baton-node.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { ControllerCalls, eventsOf, resultOf } from "../../support/controller-calls.ts";
import { suiteScope, type Scope } from "../../support/node-cleanup.ts";
import { nodeHere } from "../../support/node-here.ts";
import { Scrape } from "../../support/prometheus-text.ts";
import { eventually } from "../../support/wait.ts";
import { column, columns } from "../../support/columns.ts";

const JSON_BODY = { "content-type": "application/json" };
const NOT_LEADER = ["error", "leader_epoch", "leader_id", "leader_url", "node_id", "role"];

function controller(t: Scope, settings: Record<string, string> = {}): Promise<BatonNode> {
  return nodeHere(t, { http: true, settings: { WORKER__CONCURRENCY: "0", ...settings } });
}

describe("the controller API", () => {
  const scope = suiteScope();
  let node: BatonNode;
  let v1: ControllerCalls;
  before(async () => {
    node = await controller(scope, { RETRY__DELAY: "50ms" });
    v1 = new ControllerCalls(node);
  });
  /** An agent that asks for work is listed before its request waits. */
  const known = (agent: string): Promise<unknown> =>
    eventually(`${agent} to ask`, async () =>
      (await v1.get("/v1/agents")).body.agents.some(({ name }: any) => name === agent),
    );

  it("leads a job from its submit through a lease to its result, each under the epoch of the term", async () => {
    const { status, body, headers } = await v1.post("/v1/jobs", { task: "work", payload: { n: 1 } });
    assert.deepEqual([status, body.status, body.leader_epoch], [200, "queued", 1]);
    assert.equal(headers.get("x-baton-role"), "LEADER");
    assert.equal(headers.get("x-baton-node"), "here");
    assert.equal(headers.get("x-baton-leader-epoch"), "1");
    assert.equal(headers.get("x-baton-leader-id"), "here");
    const lease = (await v1.ask()).body;
    assert.match(lease.lease_id, /^agent:ada\/[0-9a-f-]{36}$/);
    assert.deepEqual([lease.leader_epoch, lease.leader_id, lease.expires_in_ms], [1, "here", 30_000]);
    const { created_at: createdAt, ...task } = lease.tasks[0];
    assert.ok(Date.parse(createdAt) > 0);
    assert.deepEqual(task, {
      job_id: body.job_id,
      job_epoch: 1,
      task: "work",
      queue: "default",
      priority: 0,
      payload: { n: 1 },
      attempt: 1,
      max_attempts: 3,
      failures: 0,
      timeout_ms: 3_600_000,
      traceparent: null,
      tracestate: null,
    });
    const leased = await v1.job(body.job_id);
    assert.deepEqual([leased.status, leased.worker, leased.leader_epoch], ["processing", "ada", 1]);
    const ended = await v1.result(lease, { result: { sum: 3 } });
    assert.deepEqual(ended.body, {
      job_id: body.job_id,
      accepted: true,
      status: "completed",
      leader_epoch: 1,
    });
    assert.equal((await v1.job(body.job_id)).status, "completed");
    assert.deepEqual((await v1.get(`/jobs/${body.job_id}/result`)).body.result, { sum: 3 });
  });

  it("gives back at once what was leased with a request whose answer never came, and nothing else", async () => {
    const [id, other] = [await v1.submit({ task: "lost" }), await v1.submit({ task: "lost" })];
    const lost = { capabilities: ["lost"], timeout_ms: 0 };
    const gone = await v1.lease({ ...lost, request_id: "r1" });
    assert.match(gone.lease_id, /^agent:ada\/r1\/[0-9a-f-]{36}$/);
    const kept = await v1.lease({ ...lost, request_id: "r2" });
    assert.equal((await v1.ask({ ...lost, agent: "bob", unanswered: ["r1"] })).status, 204, "not bob's");
    const next = await v1.lease({ ...lost, request_id: "r3", unanswered: ["r1", "r0"] });
    assert.deepEqual([next.tasks[0]!.job_id, next.tasks[0]!.job_epoch], [id, 3]);
    const { interruptions, crashes, attempts } = await v1.job(id);
    assert.deepEqual([interruptions, crashes, attempts], [1, 0, 2]);
    assert.equal((await v1.result(gone)).body.field, "job_epoch");
    assert.equal((await v1.result(kept)).status, 200);
    assert.equal((await v1.job(other)).status, "completed");

    const last = await v1.post("/v1/agents/heartbeat", { agent: "ada", unanswered: ["r3"] });
    assert.equal(last.status, 200);
    assert.deepEqual([(await v1.job(id)).status, (await v1.job(id)).interruptions], ["queued", 2]);
    await v1.result(await v1.lease(lost));
  });

  it("answers the right owner who repeats a result with the same, for every way to end", async () => {
    const cases: [object, string][] = [
      [{ status: "succeeded", result: 1 }, "completed"],
      [{ status: "failed", error: { message: "no", retryable: false } }, "failed"],
      [{ status: "failed", error: { message: "no" } }, "scheduled"],
      [{ status: "cancelled", error: { message: "asked to" } }, "cancelled"],
      [{ status: "released" }, "queued"],
    ];
    for (const [n, [fields, status]] of cases.entries()) {
      const task = `once-${n}`;
      const id = await v1.submit({ task });
      const lease = await v1.lease({ capabilities: [task] });
      const first = await v1.result(lease, fields);
      assert.deepEqual([first.status, first.body.status], [200, status], JSON.stringify(fields));
      const second = await v1.result(lease, fields);
      assert.deepEqual([second.status, second.body], [200, first.body], JSON.stringify(fields));
      const job = await v1.job(id);
      assert.equal(job.failures, status === "failed" || status === "scheduled" ? 1 : 0, "counted twice");
    }
  });

  it("refuses a result without the epochs, with old ones, and under another lease", async () => {
    const id = await v1.submit({ task: "guarded" });
    const lease = await v1.lease({ capabilities: ["guarded"] });
    const wrong: [object, string][] = [
      [{ leader_epoch: undefined }, "leader_epoch"],
      [{ leader_epoch: null }, "leader_epoch"],
      [{ leader_epoch: 0 }, "leader_epoch"],
      [{ leader_epoch: 2 }, "leader_epoch"],
      [{ job_epoch: undefined }, "job_epoch"],
      [{ job_epoch: 0 }, "job_epoch"],
      [{ job_epoch: 2 }, "job_epoch"],
      [{ agent: "eve" }, "lease_id"],
      [{ lease_id: "here/incarnation" }, "lease_id"],
      [{ lease_id: lease.lease_id.replace("ada", "eve") }, "job_epoch"],
    ];
    for (const [fields, field] of wrong) {
      const { status, body } = await v1.result(lease, fields);
      assert.deepEqual(
        [status, body.error, body.alias, body.job_id, body.field],
        [409, "STALE_EPOCH", "STALE_LEASE", id, field],
        JSON.stringify(fields),
      );
      assert.equal(typeof body.message, "string");
    }
    assert.equal((await v1.job(id)).status, "processing");
    const logs = { ...resultOf(lease), status: undefined, lines: [{ message: "x" }] };
    assert.equal((await v1.post("/v1/logs", { ...logs, leader_epoch: 9 })).body.error, "STALE_EPOCH");
    assert.equal((await v1.post("/v1/logs", { ...logs, job_epoch: 9 })).body.error, "STALE_EPOCH");
    assert.equal((await v1.ask({ leader_epoch: 9 })).body.error, "STALE_EPOCH");
    assert.equal((await v1.result(lease)).status, 200);
    const gone = await v1.result(lease, { job_id: id.replace(/.$/, id.endsWith("0") ? "1" : "0") });
    assert.deepEqual([gone.status, gone.body.error], [404, "NOT_FOUND"]);
  });

  it("gives agents only what they can do, in the queues that they name", async () => {
    await v1.submit({ task: "new-kind", queue: "q1" });
    assert.equal((await v1.ask({ capabilities: ["old-kind"], timeout_ms: 0 })).status, 204);
    assert.equal((await v1.ask({ capabilities: ["new-kind"], queues: ["q2"], timeout_ms: 0 })).status, 204);
    const { status } = await v1.ask({ capabilities: ["new-kind"], queues: ["q1"], timeout_ms: 0 });
    assert.equal(status, 200);
  });

  it("does not give work to an agent whose connection is gone", async () => {
    const connections = async () => (await Scrape.of(node.url)).value("baton_http_connections");
    // A connection of its own: the pool of `fetch` would open the one that was left again.
    const waiting = request(`${node.url}/v1/leases`, { method: "POST", agent: false, headers: JSON_BODY });
    waiting.on("error", () => {});
    waiting.end(JSON.stringify({ agent: "dead", capabilities: ["ghost"], max_tasks: 1, timeout_ms: 20_000 }));
    await known("dead");
    const open = await connections();
    waiting.destroy();
    await eventually("the connection to close", async () => (await connections()) < open);
    await v1.submit({ task: "ghost" });
    const lease = await v1.lease({ capabilities: ["ghost"], agent: "alive" });
    assert.equal((await v1.job(lease.tasks[0]!.job_id)).worker, "alive");
  });

  it("keeps a lease that is renewed, tells of cancellations, and refuses one that is not theirs", async () => {
    const id = await v1.submit({ task: "long" });
    const lease = await v1.lease({ capabilities: ["long"] });
    const renew = (fields: object = {}) =>
      v1.post("/v1/leases/renew", { agent: "ada", lease_id: lease.lease_id, ...fields });
    assert.deepEqual((await renew()).body, {
      lease_id: lease.lease_id,
      leader_epoch: 1,
      expires_in_ms: 30_000,
      cancelled: [],
    });
    await v1.post(`/jobs/${id}/cancel`, { reason: "enough" });
    assert.deepEqual((await renew()).body.cancelled, [{ job_id: id, job_epoch: 1, reason: "enough" }]);
    for (const fields of [{ agent: "eve" }, { lease_id: "agent:ada/none" }, { lease_id: "here/worker" }]) {
      const { status, body } = await renew(fields);
      assert.deepEqual([status, body.error, body.field], [409, "STALE_EPOCH", "lease_id"]);
    }
    assert.equal((await v1.result(lease, { status: "released" })).body.status, "cancelled");
  });

  it("stores the lines and the progress of a run", async () => {
    const id = await v1.submit({ task: "talks" });
    const lease = await v1.lease({ capabilities: ["talks"] });
    const { status: _, ...run } = resultOf(lease) as { status: string };
    const lines = [
      { message: "one", at: "2026-01-31T09:00:00Z" },
      { message: "two", level: "warn" },
    ];
    const told = await v1.post("/v1/logs", { ...run, lines, progress: { percent: 40, message: "half" } });
    assert.deepEqual([told.status, told.body], [200, { accepted: 2 }]);
    assert.deepEqual((await v1.post("/v1/logs", run)).body, { accepted: 0 });
    const { logs } = (await v1.get(`/jobs/${id}/logs`)).body;
    assert.deepEqual(columns(logs as any[], "level", "message"), [
      ["info", "one"],
      ["warn", "two"],
    ]);
    const job = await v1.job(id);
    assert.deepEqual([job.progress, job.progress_message], [40, "half"]);
    await v1.result(lease);
    assert.equal((await v1.post("/v1/logs", { ...run, lines })).body.error, "STALE_EPOCH");
  });

  it("knows its agents, forgets none for nothing, and removes them", async () => {
    const agents = async (query = ""): Promise<any[]> => (await v1.get(`/v1/agents${query}`)).body.agents;
    const beat = {
      agent: "carl",
      capabilities: ["b", "a"],
      version: "1.2",
      labels: { zone: "x" },
      running: 2,
    };
    assert.deepEqual((await v1.post("/v1/agents/heartbeat", beat)).body, { ok: true, leader_epoch: 1 });
    const find = async (query = "") => (await agents(query)).find(({ name }) => name === "carl");
    const { first_seen_at: _f, last_seen_at: _l, ...carl } = await find();
    assert.deepEqual(carl, {
      name: "carl",
      state: "alive",
      capabilities: ["a", "b"],
      version: "1.2",
      labels: { zone: "x" },
      running: 2,
      removed_at: null,
      leader_epoch: 1,
    });
    await v1.post("/v1/agents/heartbeat", { agent: "carl", version: "1.3" });
    const again = await find();
    assert.deepEqual([again.capabilities, again.version, again.labels], [["a", "b"], "1.3", { zone: "x" }]);
    assert.deepEqual((await v1.call("DELETE", "/v1/agents/carl")).body, { ok: true, deleted: true });
    assert.deepEqual((await v1.call("DELETE", "/v1/agents/carl")).body, { ok: true, deleted: false });
    assert.equal(await find(), undefined);
    assert.equal((await find("?include_removed=true")).state, "removed");
    await v1.ask({ agent: "carl", capabilities: ["c"], timeout_ms: 0 });
    assert.deepEqual([(await find()).state, (await find()).capabilities], ["alive", ["c"]]);
  });

  it("takes a job under an id of the caller once, and many jobs or none", async () => {
    const id = "here-0198c0de-0000-7000-8000-000000000001";
    assert.equal((await v1.post("/v1/jobs", { task: "named", job_id: id })).body.job_id, id);
    const again = await v1.post("/v1/jobs", { task: "other", job_id: id });
    assert.deepEqual([again.status, again.body.job_id], [200, id]);
    assert.equal((await v1.job(id)).task, "named");
    const foreign = await v1.post("/v1/jobs", { task: "named", job_id: id.replace("here", "there") });
    assert.deepEqual([foreign.status, foreign.body.field], [400, "job_id"]);
    const many = await v1.post("/v1/jobs", [{ task: "m" }, { task: "m", idempotency_key: "k" }]);
    assert.deepEqual(columns(many.body as any[], "status", "leader_epoch"), [
      ["queued", 1],
      ["queued", 1],
    ]);
    const listed = (await v1.get("/v1/jobs?task=m")).body;
    assert.deepEqual([listed.jobs.length, listed.next_cursor], [2, null]);
  });
});

describe("the events of the controller", () => {
  it("begin with hello, tell what happens, and go on behind the last one that was seen", async (t) => {
    const node = await controller(t);
    const v1 = new ControllerCalls(node);
    const stop = new AbortController();
    t.after(() => stop.abort());
    const url = `${node.url}/v1/events`;
    const events = eventsOf(url, stop.signal);
    const hello = (await events.next()).value!;
    assert.deepEqual(
      [hello.event, hello.id, hello.data.node_id, hello.data.role],
      ["hello", null, "here", "LEADER"],
    );
    assert.equal(hello.data.leader_epoch, 1);
    const id = await v1.submit();
    const lease = await v1.lease();
    await v1.result(lease);
    await v1.result(lease);
    await v1.result(lease, { job_epoch: 9 });
    await v1.call("DELETE", "/v1/agents/ada");
    const told = [];
    while (told.at(-1)?.event !== "agent.removed") told.push((await events.next()).value);
    assert.deepEqual(column(told, "event"), [
      "job.submitted",
      "agent.seen",
      "job.leased",
      "result.accepted",
      "job.completed",
      "result.duplicate",
      "result.rejected",
      "agent.removed",
    ]);
    assert.deepEqual([told[0]!.data.job_id, told[2]!.data.agent], [id, "ada"]);
    for (const { id: each } of told) assert.match(each, /^1-\d+$/);

    const behind = eventsOf(url, stop.signal, { "last-event-id": told[4]!.id! });
    assert.equal((await behind.next()).value!.event, "hello");
    assert.deepEqual((await behind.next()).value, told[5]);
    const since = eventsOf(`${url}?since=${told[6]!.id}`, stop.signal);
    await since.next();
    assert.deepEqual((await since.next()).value, told[7]);
    const lost = eventsOf(`${url}?since=0-77`, stop.signal);
    await lost.next();
    const gap = (await lost.next()).value!;
    assert.deepEqual([gap.event, gap.data.since, gap.data.next], ["gap", "0-77", told[0]!.id]);
    assert.deepEqual((await lost.next()).value, told[0]);
  });
});

describe("a job of a task that only agents know", () => {
  it("waits for one that is busy, and says so when they are gone", async (t) => {
    const node = await controller(t, { AGENTS__STALE_AFTER: "1s" });
    const v1 = new ControllerCalls(node);
    const beat = () => v1.post("/v1/agents/heartbeat", { agent: "ada", capabilities: ["sing"] });
    const waitsFor = async (task: string): Promise<any> => {
      const { body } = await v1.post("/jobs", { task, allow_unknown: true });
      return (await v1.get(`/jobs/${body.job_id}`)).body.waiting_for;
    };
    assert.equal((await waitsFor("sing")).code, "unknown_task");
    await eventually("it counts", async () => {
      await beat();
      return (await waitsFor("sing")).code === "workers_busy";
    });
    assert.equal((await waitsFor("dance")).code, "unknown_task");
    await eventually("it is stale", async () => (await waitsFor("sing")).code === "no_worker");
    assert.match((await waitsFor("sing")).message, /no agent or worker that knows task sing is alive now/);
  });
});

describe("a controller that does not lead", () => {
  const writes: [string, string, object?][] = [
    ["POST", "/v1/jobs", { task: "work" }],
    ["POST", "/v1/leases", { agent: "ada", capabilities: ["work"], timeout_ms: 60_000 }],
    ["POST", "/v1/agents/heartbeat", { agent: "ada" }],
    ["DELETE", "/v1/agents/ada"],
  ];
  const finishes: [string, string, object][] = [
    ["POST", "/v1/leases/renew", { agent: "ada", lease_id: "agent:ada/x" }],
    [
      "POST",
      "/v1/results",
      {
        lease_id: "agent:ada/x",
        job_id: `here-${"0".repeat(8)}-0000-7000-8000-${"0".repeat(12)}`,
        status: "succeeded",
      },
    ],
    [
      "POST",
      "/v1/logs",
      { lease_id: "agent:ada/x", job_id: `here-${"0".repeat(8)}-0000-7000-8000-${"0".repeat(12)}` },
    ],
  ];

  it("drained, refuses every write with the six fields, and answers every question", async (t) => {
    const node = await controller(t);
    const v1 = new ControllerCalls(node);
    const waiting = v1.ask({ timeout_ms: 60_000 });
    await systemClock.sleep(50);
    await v1.post("/cluster/nodes/here/drain", {});
    const sentAway = await waiting;
    assert.deepEqual([sentAway.status, sentAway.body.role], [409, "DRAINING"]);
    await eventually(
      "drained",
      async () => (await v1.post("/v1/results", finishes[1]![2])).body.error === "NOT_LEADER",
    );
    for (const [method, path, body] of [...writes, ...finishes]) {
      const told = await v1.call(method, path, body);
      assert.equal(told.status, 409, path);
      assert.deepEqual(Object.keys(told.body).sort(), NOT_LEADER, path);
      assert.deepEqual(
        [told.body.error, told.body.node_id, told.body.role],
        ["NOT_LEADER", "here", "DRAINING"],
      );
      assert.equal(told.headers.get("x-baton-role"), "DRAINING");
    }
    for (const path of ["/v1/agents", "/v1/jobs", "/healthz", "/role"])
      assert.equal((await v1.get(path)).status, 200, path);
    await v1.post("/cluster/nodes/here/resume", {});
    await eventually("resumed", async () => (await v1.post("/v1/jobs", { task: "work" })).status === 200);
    assert.equal((await v1.ask()).body.leader_epoch, 2);
  });
});
