import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { defineTask, PermanentError } from "../../../../src/jobs/tasks/task.ts";
import { finished, nodeHere, submit } from "../../../support/node-here.ts";
import { Scrape } from "../../../support/prometheus-text.ts";

const TASKS = [
  defineTask({ name: "work", run: () => 1 }),
  defineTask({
    name: "flaky",
    retry: { delay: 1, maxDelay: 1 },
    run: (_payload, { attempt }) => {
      if (attempt === 1) throw new Error("once more");
    },
  }),
  defineTask({
    name: "fails",
    run: () => {
      throw new PermanentError("never");
    },
  }),
];

describe("the metrics of a node", () => {
  it("count what happens to jobs, by queue, task and outcome", async (t) => {
    const node = await nodeHere(t, { http: true, tasks: TASKS });
    const ids = [
      await submit(node, "work"),
      await submit(node, "work", { idempotencyKey: "k" }),
      await submit(node, "work", { idempotencyKey: "k" }),
      await submit(node, "flaky", { queue: "q" }),
      await submit(node, "fails"),
    ];
    for (const id of ids) await finished(node, id);
    const scrape = await Scrape.of(node.url);
    assert.equal(scrape.value("baton_jobs_submitted_total"), 4);
    assert.equal(scrape.value("baton_jobs_submitted_total", { queue: "default", task: "work" }), 2);
    assert.equal(scrape.value("baton_jobs_started_total", { task: "flaky", queue: "q" }), 2);
    const ended = (task: string, outcome: string): number =>
      scrape.value("baton_jobs_finished_total", { task, outcome });
    assert.deepEqual(
      [
        ended("work", "completed"),
        ended("flaky", "retry"),
        ended("flaky", "completed"),
        ended("fails", "failed"),
      ],
      [2, 1, 1, 1],
    );
    assert.equal(scrape.value("baton_job_run_seconds_count"), 5);
    assert.equal(scrape.value("baton_job_wait_seconds_count", { task: "work" }), 2);
    assert.ok(scrape.value("baton_claims_total", { result: "jobs" }) >= 1);
    assert.equal(scrape.value("baton_claim_seconds_count"), scrape.value("baton_claims_total"));
  });

  it("tell what the node is, whether it leads, and what waits", async (t) => {
    const node = await nodeHere(t, { http: true, tasks: TASKS, settings: { NAME: "ada" } });
    await node.services.queues.setPaused("later", true);
    await submit(node, "work", { queue: "later" });
    await submit(node, "unheard-of", { allowUnknown: true });
    const scrape = await Scrape.of(node.url);
    const [info] = scrape.find("baton_build_info");
    assert.deepEqual([info!.labels["node"], info!.labels["store"], info!.value], ["ada", "memory", 1]);
    assert.equal(scrape.value("baton_leader", { role: "scheduler" }), 1);
    assert.equal(scrape.value("baton_leader_epoch", { role: "scheduler" }), 1);
    assert.equal(scrape.value("baton_leader_terms_total", { role: "scheduler" }), 1);
    assert.equal(scrape.value("baton_nodes", { status: "active" }), 1);
    assert.equal(scrape.value("baton_worker_slots"), node.services.roles.has("worker") ? 10 : 0);
    assert.equal(scrape.value("baton_queue_jobs", { queue: "later", status: "queued" }), 1);
    assert.equal(scrape.value("baton_queue_paused", { queue: "later" }), 1);
    assert.ok(scrape.value("baton_queue_oldest_seconds", { queue: "default" }) < 5);
    assert.ok(scrape.value("baton_backlog_age_seconds") < 5);
    assert.ok(scrape.value("process_resident_memory_bytes") > 1e7);
    assert.ok(scrape.value("process_cpu_seconds_total") > 0);
    assert.ok(Math.abs(scrape.value("baton_start_time_seconds") - Date.now() / 1_000) < 60);
  });

  it("count requests by the route of the table, and whatever else is asked for as one", async (t) => {
    const node = await nodeHere(t, { http: true, tasks: TASKS });
    const id = await submit(node, "work");
    const get = async (path: string): Promise<void> => void (await fetch(node.url + path)).body?.cancel();
    await get(`/jobs/${id}`);
    await get("/jobs/nonsense");
    await get("/made/up/1");
    await get("/made/up/2");
    const scrape = await Scrape.of(node.url);
    const count = (labels: Record<string, string>): number =>
      scrape.value("baton_http_requests_total", labels);
    assert.equal(count({ method: "GET", route: "/jobs/{id}", status: "2xx" }), 1);
    assert.equal(count({ route: "/jobs/{id}", status: "4xx" }), 1);
    assert.equal(count({ route: "other", status: "4xx" }), 2);
    assert.equal(scrape.value("baton_http_request_seconds_count", { route: "/jobs/{id}" }), 2);
  });

  it("are none of another node in the same process", async (t) => {
    const [a, b] = [
      await nodeHere(t, { http: true, tasks: TASKS, settings: { NAME: "a" } }),
      await nodeHere(t, { http: true, tasks: TASKS, settings: { NAME: "b" } }),
    ];
    await finished(a, await submit(a, "work"));
    assert.equal((await Scrape.of(a.url)).value("baton_jobs_submitted_total"), 1);
    assert.deepEqual((await Scrape.of(b.url)).find("baton_jobs_submitted_total"), []);
  });

  it("never have an id of a job in them", async (t) => {
    const node = await nodeHere(t, { http: true, tasks: TASKS });
    const id = await submit(node, "work");
    await finished(node, id);
    await (await fetch(`${node.url}/jobs/${id}`)).text();
    const text = await (await fetch(`${node.url}/metrics`)).text();
    assert.ok(!text.includes(id.slice(-36)));
  });

  it("follow the conventions: prefix, base units, and suffixes by type", async (t) => {
    const node = await nodeHere(t, { http: true, tasks: TASKS });
    await finished(node, await submit(node, "work"));
    const { families } = await Scrape.of(node.url);
    for (const { name, type, help } of families.values()) {
      assert.match(name, /^(?:baton|process|nodejs)_[a-z_]+$/);
      assert.equal(name.endsWith("_total"), type === "counter", name);
      assert.ok(help.length > 5, name);
      assert.doesNotMatch(name, /_(?:ms|millis|milliseconds|kb|mb|percent)(?:_|$)/);
      if (type === "histogram") assert.match(name, /_seconds$/);
    }
    assert.ok(families.size > 45, `${families.size}`);
  });
});
