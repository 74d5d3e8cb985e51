import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { FakeNode, suiteApp } from "./fake-node.ts";
import { columns } from "../../support/columns.ts";

const node = new FakeNode();
const { inject, call } = suiteApp(node);

describe("submitting", () => {
  it("takes one job and answers its id and status", async () => {
    const { status, body } = await call("POST", "/jobs", { task: "hello", payload: { to: ["you"] } });
    assert.equal(status, 200);
    assert.deepEqual(Object.keys(body), ["job_id", "status", "existed"]);
    assert.equal(body.status, "queued");
    assert.equal(node.kept.get(body.job_id)!.job.payload, '{"to":["you"]}');
  });

  it("passes every field on", async () => {
    const { body } = await call("POST", "/jobs", {
      task: "hello",
      queue: "mail/eu",
      priority: -100,
      run_at: "2026-03-01T10:00:00+02:00",
      max_attempts: 7,
      timeout_ms: 1_000,
      idempotency_key: "k",
    });
    const { job } = node.kept.get(body.job_id)!;
    assert.equal(body.status, "scheduled");
    assert.deepEqual(
      [job.queue, job.priority, job.runAt, job.maxAttempts, job.timeoutMs, job.idempotencyKey],
      ["mail/eu", -100, Date.UTC(2026, 2, 1, 8), 7, 1_000, "k"],
    );
  });

  it("delays", async () => {
    const { body } = await call("POST", "/jobs", { task: "hello", delay_ms: 60_000 });
    assert.equal(node.kept.get(body.job_id)!.job.runAt, node.clock.now() + 60_000);
  });

  it("takes an array in one go and answers in its order", async () => {
    const { status, body } = await call("POST", "/jobs", [{ task: "a" }, { task: "b", delay_ms: 5 }]);
    assert.equal(status, 200);
    assert.deepEqual(
      body.map((entry: { job_id: string; status: string }) => [
        node.kept.get(entry.job_id)!.job.task,
        entry.status,
      ]),
      [
        ["a", "queued"],
        ["b", "scheduled"],
      ],
    );
    assert.equal(node.submits, 1);
  });

  it("takes 10,000 jobs at once and not one more", async () => {
    const jobs = Array.from({ length: 10_000 }, () => ({ task: "a" }));
    assert.equal((await call("POST", "/jobs", jobs)).status, 200);
    const { status, body } = await call("POST", "/jobs", [...jobs, { task: "a" }]);
    assert.equal(status, 400);
    assert.match(body.message, /1 to 10000/);
    assert.equal(node.kept.size, 10_000);
  });

  it("takes the idempotency key from the header for a single job", async () => {
    const first = await call("POST", "/jobs", { task: "a" }, { "idempotency-key": "once" });
    const again = await call("POST", "/jobs", { task: "a", idempotency_key: "once" });
    assert.equal(first.body.job_id, again.body.job_id);
  });

  it("refuses a header that contradicts the body, that comes with an array, or that is no key", async () => {
    const contradiction = await call(
      "POST",
      "/jobs",
      { task: "a", idempotency_key: "x" },
      { "idempotency-key": "y" },
    );
    const many = await call("POST", "/jobs", [{ task: "a" }], { "idempotency-key": "y" });
    const long = await call("POST", "/jobs", { task: "a" }, { "idempotency-key": "y".repeat(257) });
    for (const { status, body } of [contradiction, many, long]) {
      assert.deepEqual([status, body.error, body.field], [400, "BAD_REQUEST", "idempotency_key"]);
    }
    assert.equal(node.kept.size, 0);
  });
});

describe("a job", () => {
  it("is shown with all its fields, in snake_case and ISO-8601", async () => {
    const { body: submitted } = await call("POST", "/jobs", { task: "other", payload: [1] });
    const { status, body } = await call("GET", `/jobs/${submitted.job_id}`);
    assert.equal(status, 200);
    assert.deepEqual(body, {
      job_id: submitted.job_id,
      task: "other",
      queue: "default",
      status: "queued",
      priority: 0,
      progress: null,
      progress_message: null,
      attempts: 0,
      failures: 0,
      interruptions: 0,
      crashes: 0,
      max_attempts: 3,
      timeout_ms: null,
      idempotency_key: null,
      schedule: null,
      cancel_requested: false,
      created_at: "2026-01-01T00:00:00.000Z",
      updated_at: "2026-01-01T00:00:00.000Z",
      run_at: "2026-01-01T00:00:00.000Z",
      started_at: null,
      finished_at: null,
      owner: "node-a",
      worker: null,
      job_epoch: 0,
      owner_epoch: 1,
      leader_epoch: 7,
      error: null,
      killed: [],
      tags: [],
      payload: [1],
      traceparent: null,
      waiting_for: { code: "unknown_task", message: "no worker here knows the task other" },
    });
  });

  it("is shown with its error, whatever that carries, and with the nodes that it killed", async () => {
    const error = { code: "QUARANTINED", message: "m", stack: "at x", killed: ["n1"], more: { deep: 1 } };
    const id = node.add("failed", { error, killed: ["n1", "n2"], startedAt: 5, progress: 0.5 });
    const { body } = await call("GET", `/jobs/${id}`);
    assert.deepEqual(body.error, error);
    assert.deepEqual(body.killed, ["n1", "n2"]);
    assert.equal(body.started_at, "1970-01-01T00:00:00.005Z");
    assert.equal(body.progress, 0.5);
  });

  it("gives its result once it is completed", async () => {
    const id = node.add();
    node.finish(id, "completed", { lang: "de", p: 0.5, parts: [null, true] });
    const { status, body } = await call("GET", `/jobs/${id}/result`);
    assert.equal(status, 200);
    assert.deepEqual(body, {
      job_id: id,
      status: "completed",
      result: { lang: "de", p: 0.5, parts: [null, true] },
    });
  });

  it("has no result yet while it is unfinished", async () => {
    for (const status of ["scheduled", "queued", "processing"] as const) {
      const answer = await call("GET", `/jobs/${node.add(status)}/result`);
      assert.deepEqual([answer.status, answer.body.error, answer.body.status], [409, "NOT_FINISHED", status]);
    }
  });

  it("says that there never will be a result, and why, when it failed or was cancelled", async () => {
    const id = node.add();
    node.finish(id, "failed");
    const { status, body } = await call("GET", `/jobs/${id}/result`);
    assert.deepEqual([status, body.error, body.status], [409, "NO_RESULT", "failed"]);
    assert.deepEqual(body.job_error, { code: "ERROR", message: "it broke" });
    const cancelled = await call("GET", `/jobs/${node.add("cancelled")}/result`);
    assert.deepEqual([cancelled.status, cancelled.body.status], [409, "cancelled"]);
  });

  it("gives its log page by page", async () => {
    const id = node.add();
    for (const text of ["one", "two", "three"]) node.log(id, text);
    const first = await call("GET", `/jobs/${id}/logs?limit=2`);
    assert.deepEqual(first.body, {
      job_id: id,
      logs: [
        { seq: 1, at: "2026-01-01T00:00:00.000Z", level: "info", message: "one", job_epoch: 1 },
        { seq: 2, at: "2026-01-01T00:00:00.000Z", level: "info", message: "two", job_epoch: 1 },
      ],
      next_after: 2,
    });
    const second = await call("GET", `/jobs/${id}/logs?after=${first.body.next_after}`);
    assert.deepEqual([second.body.logs.length, second.body.next_after], [1, 3]);
    const last = await call("GET", `/jobs/${id}/logs?after=3`);
    assert.deepEqual([last.body.logs, last.body.next_after], [[], 3]);
  });

  it("is cancelled at once while it waits, and by request while it runs", async () => {
    const waiting = node.add();
    const done = await call("POST", `/jobs/${waiting}/cancel`, { reason: "wrong input" });
    assert.deepEqual([done.status, done.body], [200, { job_id: waiting, status: "cancelled" }]);
    assert.equal(node.kept.get(waiting)!.job.error!.message, "wrong input");
    const running = node.add("processing");
    const asked = await call("POST", `/jobs/${running}/cancel`);
    assert.deepEqual(
      [asked.status, asked.body],
      [202, { job_id: running, status: "processing", cancel_requested: true }],
    );
    const finished = await call("POST", `/jobs/${waiting}/cancel`);
    assert.deepEqual(
      [finished.status, finished.body.error, finished.body.status],
      [409, "JOB_FINISHED", "cancelled"],
    );
  });

  it("is retried by hand when it failed, and not otherwise", async () => {
    const failed = node.add("failed");
    assert.deepEqual((await call("POST", `/jobs/${failed}/retry`)).body, {
      job_id: failed,
      status: "queued",
    });
    const { status, body } = await call("POST", `/jobs/${failed}/retry`);
    assert.deepEqual([status, body.error, body.status], [409, "JOB_NOT_RETRYABLE", "queued"]);
  });

  it("is deleted unless it runs", async () => {
    const id = node.add("completed");
    assert.deepEqual((await call("DELETE", `/jobs/${id}`)).body, { status: "ok", job_id: id });
    const gone = await call("DELETE", `/jobs/${id}`);
    assert.deepEqual([gone.status, gone.body.error], [404, "NOT_FOUND"]);
    const running = await call("DELETE", `/jobs/${node.add("processing")}`);
    assert.deepEqual([running.status, running.body.error], [409, "JOB_RUNNING"]);
  });

  it("that is unknown is not found, by whatever is asked of it", async () => {
    const id = node.id();
    for (const [method, path] of [
      ["GET", ""],
      ["GET", "/result"],
      ["GET", "/logs"],
      ["POST", "/cancel"],
      ["POST", "/retry"],
      ["DELETE", ""],
    ] as const) {
      const { status, body } = await call(method, `/jobs/${id}${path}`);
      assert.deepEqual([status, body.error], [404, "NOT_FOUND"], `${method} ${path}`);
    }
  });
});

describe("listing jobs", () => {
  it("filters, and goes on from a cursor", async () => {
    for (let n = 0; n < 3; n++) node.add("failed");
    node.add("completed", { queue: "other" });
    const first = await call("GET", "/admin/jobs?status=failed&limit=2");
    assert.equal(first.body.server, "node-a");
    assert.equal(first.body.jobs.length, 2);
    const next = await call("GET", `/admin/jobs?status=failed&limit=2&cursor=${first.body.next_cursor}`);
    assert.deepEqual([next.body.jobs.length, next.body.next_cursor], [1, null]);
    assert.equal((await call("GET", "/admin/jobs?queue=other&task=hello")).body.jobs.length, 1);
    assert.equal((await call("GET", "/admin/jobs?since=2026-01-01T00:00:00Z")).body.jobs.length, 4);
    assert.equal((await call("GET", "/admin/jobs?since=2026-01-01T00:00:01Z")).body.jobs.length, 0);
  });

  it("leaves payloads out", async () => {
    node.add();
    const { body } = await call("GET", "/admin/jobs");
    assert.equal("payload" in body.jobs[0], false);
    assert.equal(body.jobs[0].max_attempts, 3);
  });
});

describe("queues", () => {
  it("are listed with their counts, paused and resumed", async () => {
    node.add();
    assert.deepEqual((await call("POST", "/queues/default/pause")).body, { name: "default", paused: true });
    assert.deepEqual((await call("GET", "/queues")).body, {
      queues: [
        {
          name: "default",
          paused: true,
          counts: { scheduled: 0, queued: 1, processing: 0, completed: 0, failed: 0, cancelled: 0 },
          oldest_waiting_at: "2026-01-01T00:00:00.000Z",
          slots: 0,
          submitted_per_second: null,
          finished_per_second: null,
        },
      ],
    });
    assert.deepEqual((await call("POST", "/queues/default/resume")).body, { name: "default", paused: false });
    assert.equal(node.paused.size, 0);
  });

  it("are told with the places and the traffic of those that serve them", async () => {
    node.add();
    const load = { jobs: 0, connections: 0, cpu: 0, memory: 0, loopLagMs: 0 };
    const traffic = { submitted: 3, finished: 2, failed: 0, others: false };
    const told = (submitted: number, finished: number) => ({
      ...traffic,
      queues: [["default", submitted, finished] as const],
    });
    node.join("node-b", { load: { ...load, slots: 4, traffic: told(3, 2) } });
    node.join("node-c", { load: { ...load, slots: 8, traffic: { ...traffic, queues: [] } } });
    node.join("node-d", { load: { ...load, slots: 8, serves: { queues: ["mail"], except: [] } } });
    node.join("node-e", { load: { ...load, slots: 8, traffic: told(9, 9) }, alive: false, status: "dead" });
    node.join("node-f", { load: { ...load, slots: 16 }, status: "draining" });
    const [queue] = (await call("GET", "/queues")).body.queues;
    assert.deepEqual([queue.slots, queue.submitted_per_second, queue.finished_per_second], [12, 3, 2]);
  });

  it("may have a slash in their name", async () => {
    const { body } = await call("POST", `/queues/${encodeURIComponent("mail/eu")}/pause`);
    assert.deepEqual(body, { name: "mail/eu", paused: true });
  });
});

describe("schedules", () => {
  const definition = { task: "hello", cron: "*/5 * * * *", zone: "Europe/Berlin", payload: { n: 1 } };

  it("are created, replaced, shown and removed", async () => {
    const created = await call("PUT", "/schedules/nightly", definition);
    assert.deepEqual([created.status, created.body.outcome], [201, "created"]);
    const replaced = await call("POST", "/schedules", { name: "nightly", task: "hello", every_ms: 60_000 });
    assert.deepEqual([replaced.status, replaced.body.outcome], [200, "replaced"]);
    const { body } = await call("GET", "/schedules/nightly");
    assert.deepEqual([body.every_ms, body.cron, body.zone, body.payload], [60_000, null, null, null]);
    assert.equal((await call("GET", "/schedules")).body.schedules.length, 1);
    assert.deepEqual((await call("DELETE", "/schedules/nightly")).body, { status: "ok", name: "nightly" });
    assert.equal((await call("GET", "/schedules/nightly")).status, 404);
  });

  it("are paused, resumed and triggered", async () => {
    await call("PUT", "/schedules/nightly", definition);
    assert.equal((await call("POST", "/schedules/nightly/pause")).body.paused, true);
    assert.equal((await call("POST", "/schedules/nightly/resume")).body.paused, false);
    const { body } = await call("POST", "/schedules/nightly/trigger");
    assert.ok(node.kept.has(body.job_id));
  });

  it("tell when they will fire and when they did", async (t) => {
    const noted = { schedule: "nightly", at: 0, notedAt: 0, leaderEpoch: 7 };
    t.mock.method(node.schedules, "history", async () => [
      { ...noted, do: "fire", reason: null, job: node.id() },
      { ...noted, do: "skip", reason: "overlap", job: null },
    ]);
    await call("PUT", "/schedules/nightly", { task: "hello", every_ms: 3_600_000 });
    const stored = await call("GET", "/schedules/nightly/preview?count=2");
    assert.deepEqual(stored.body, {
      name: "nightly",
      fires: ["2026-01-01T01:00:00.000Z", "2026-01-01T02:00:00.000Z"],
    });
    const asked = await call("POST", "/schedules/preview", { cron: "* * * * *" });
    assert.equal(asked.body.fires.length, 10);
    assert.equal(asked.body.in_words, "every minute, UTC");
    const each = await call("POST", "/schedules/preview", { every_ms: 90_000 });
    assert.equal(each.body.in_words, "every 1 minute 30 seconds");
    const { body } = await call("GET", "/schedules/nightly/history");
    assert.deepEqual(columns(body.occurrences as any[], "outcome", "reason"), [
      ["fired", null],
      ["skipped", "overlap"],
    ]);
  });

  it("need exactly one timing, a zone only with cron, and one name", async () => {
    const wrong: [object, string][] = [
      [{ task: "hello" }, "cron"],
      [{ task: "hello", cron: "* * * * *", every_ms: 60_000 }, "cron"],
      [{ task: "hello", every_ms: 60_000, zone: "UTC" }, "zone"],
      [{ ...definition, name: "daily" }, "name"],
    ];
    for (const [body, field] of wrong) {
      const answer = await call("PUT", "/schedules/nightly", body);
      assert.deepEqual([answer.status, answer.body.field], [400, field], JSON.stringify(body));
    }
    assert.deepEqual(await node.schedules.list(), []);
  });

  it("that never fire are refused with the service's reason", async () => {
    const { status, body } = await call("POST", "/schedules/preview", { cron: "0 0 30 2 *" });
    assert.deepEqual([status, body.error, body.field], [400, "BAD_SCHEDULE", "cron"]);
  });

  it("may be called preview, and all that are unknown are not found", async () => {
    await call("PUT", "/schedules/preview", definition);
    assert.equal((await call("GET", "/schedules/preview")).body.name, "preview");
    for (const [method, path] of [
      ["GET", "/schedules/none"],
      ["DELETE", "/schedules/none"],
      ["POST", "/schedules/none/pause"],
      ["POST", "/schedules/none/resume"],
      ["POST", "/schedules/none/trigger"],
      ["GET", "/schedules/none/preview"],
      ["GET", "/schedules/none/history"],
    ] as const) {
      assert.equal((await call(method, path)).status, 404, `${method} ${path}`);
    }
  });
});

describe("the node", () => {
  it("tells its health and its role", async () => {
    assert.deepEqual((await call("GET", "/health")).body, { status: "ok", node: "node-a" });
    assert.deepEqual((await call("GET", "/livez")).body, { ok: true });
    const standing = { role: "LEADER", leader_epoch: 7, leader_id: "node-a" };
    assert.deepEqual((await call("GET", "/healthz")).body, { ...standing, ok: true });
    assert.deepEqual((await call("GET", "/role")).body, { ...standing, node_id: "node-a" });
    node.leading = false;
    assert.equal((await call("GET", "/role")).body.role, "STANDBY");
  });

  it("is ready, or says which check fails", async () => {
    const ready = await call("GET", "/readyz");
    const cluster = { ok: true };
    assert.deepEqual(
      [ready.status, ready.body],
      [200, { ready: true, checks: { store: { ok: true }, cluster } }],
    );
    node.health.broken = "disk full";
    const broken = await call("GET", "/readyz");
    assert.deepEqual(
      [broken.status, broken.body],
      [503, { ready: false, checks: { store: { ok: false, reason: "disk full" }, cluster } }],
    );
    assert.equal(broken.headers["retry-after"], "1");
  });

  it("says what it promises with its store, and what it does not", async () => {
    const { body } = await call("GET", "/status");
    assert.deepEqual(
      [body.node, body.version, body.uptime_ms, body.role],
      ["node-a", "0.0.0-test", 5_000, "LEADER"],
    );
    assert.deepEqual(body.store, { name: "fake", durability: "nothing", shared: false });
    assert.ok(body.guarantees.promised.some((line: string) => line.includes("end with this process")));
    assert.ok(body.guarantees.not_promised.some((line: string) => line.includes("only once")));
    assert.ok(body.guarantees.not_promised.some((line: string) => line.includes("cannot take over")));
    assert.deepEqual(body.roles, ["gateway", "function", "worker", "scheduler"]);
  });

  it("says what a shared store changes, and what is to be known of its cluster", async () => {
    node.guarantees = { name: "postgres", durability: "power loss", shared: true, keepsTokenFile: false };
    node.notes = ["behind a transaction pooler"];
    node.join("node-b", { status: "dead", alive: false });
    const { body } = await call("GET", "/status");
    const { promised, not_promised: not } = body.guarantees;
    assert.ok(promised.some((line: string) => line.startsWith("Other nodes take over")));
    assert.ok(!not.some((line: string) => line.includes("cannot take over")));
    assert.ok(not.some((line: string) => line.includes("while it cannot be reached")));
    assert.deepEqual(body.cluster, {
      name: "fakes",
      active_nodes: 1,
      total_nodes: 2,
      coordination: "standalone",
      channels: "memory",
      dispatch: "pull",
      formed: true,
      notes: ["behind a transaction pooler"],
    });
  });

  it("lists its tasks", async () => {
    assert.deepEqual((await call("GET", "/tasks")).body, {
      tasks: [{ name: "hello", isolation: "none", has_schema: true, schema: { type: "object" } }],
    });
  });

  it("answers HEAD where it answers GET", async () => {
    const answer = await inject({ method: "HEAD", url: "/health" });
    assert.deepEqual([answer.statusCode, answer.body], [200, ""]);
  });
});
