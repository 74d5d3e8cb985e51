import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { fakeNode, JOB_ID, scheduleBody } from "../fake-node.ts";
import { runCli } from "../run-cli.ts";

describe("baton queues", () => {
  it("lists queues with their depth, their age and their throughput", async () => {
    const counts = { scheduled: 1, queued: 2_000, processing: 3, completed: 4, failed: 5, cancelled: 6 };
    const figures = { slots: 10, submitted_per_second: 1.25, finished_per_second: 0 };
    const oldest_waiting_at = "2026-01-01T00:59:00.000Z";
    await using node = await fakeNode({
      "GET /queues": { queues: [{ name: "mail", paused: true, counts, oldest_waiting_at, ...figures }] },
    });
    const { code, out } = await runCli(["queues", "--url", node.url]);
    assert.equal(code, 0);
    assert.deepEqual(out.split("\n"), [
      "QUEUE  STATE   WAITING  OLDEST  RUNNING  SLOTS     IN  OUT  SCHEDULED  FAILED  COMPLETED  CANCELLED",
      "mail   paused    2,000      1m        3     10  1.3/s  0/s          1       5          4          6",
      "",
    ]);
  });

  it("says how to get one while there is none", async () => {
    await using node = await fakeNode({ "GET /queues": { queues: [] } });
    assert.match((await runCli(["queues", "--url", node.url])).out, /^there are no queues yet/);
  });

  it("pauses and resumes, also names with a slash", async () => {
    await using node = await fakeNode({
      "POST /queues/a/b/pause": { name: "a/b", paused: true },
      "POST /queues/a/b/resume": { name: "a/b", paused: false },
    });
    assert.equal((await runCli(["queues", "pause", "a/b", "--url", node.url])).out, "a/b paused\n");
    assert.equal((await runCli(["queues", "resume", "a/b", "--url", node.url])).out, "a/b resumed\n");
  });
});

describe("baton schedules", () => {
  it("lists them with their timing in words", async () => {
    const every = scheduleBody({
      name: "often",
      cron: null,
      zone: null,
      every_ms: 900_000,
      in_words: "every 15 minutes",
      paused: true,
    });
    await using node = await fakeNode({ "GET /schedules": { schedules: [scheduleBody(), every] } });
    const { out } = await runCli(["schedules", "list", "--url", node.url]);
    assert.deepEqual(out.split("\n"), [
      "SCHEDULE  TASK   TIMING                             NEXT   LAST  STATE",
      "nightly   hello  at 03:00 every day, Europe/Berlin  in 1d  -     active",
      "often     hello  every 15 minutes                   in 1d  -     paused",
      "",
    ]);
  });

  it("adds one with everything that was said", async () => {
    await using node = await fakeNode({
      "PUT /schedules/nightly": () => ({ status: 201, body: { ...scheduleBody(), outcome: "created" } }),
    });
    const timing = [
      "--cron",
      "0 3 * * *",
      ..."--zone Europe/Berlin --missed run_all --missed-max 5".split(" "),
    ];
    const more = `--overlap skip --queue q --job-timeout 1m --url ${node.url}`.split(" ");
    const args = ["schedules", "add", "nightly", "hello", '{"a":1}', ...timing, ...more];
    const { code, out, err } = await runCli(args);
    assert.equal(code, 0, err);
    assert.equal(out, "nightly created, next at 2026-01-02T02:00:00.000Z\n");
    const { name: _, ...body } = node.asked[0]!.body as Record<string, unknown>;
    assert.deepEqual(body, {
      task: "hello",
      payload: { a: 1 },
      queue: "q",
      timeout_ms: 60_000,
      cron: "0 3 * * *",
      zone: "Europe/Berlin",
      missed: "run_all",
      missed_max: 5,
      overlap: "skip",
    });
  });

  it("needs exactly one timing", async () => {
    for (const timing of [[], ["--cron", "* * * * *", "--every", "1m"]]) {
      for (const command of [["add", "n", "t"], ["preview"]]) {
        const { code, err } = await runCli(["schedules", ...command, ...timing]);
        assert.equal(code, 2);
        assert.equal(err, "error: give exactly one of --cron and --every\n");
      }
    }
  });

  it("removes, pauses, resumes and triggers", async () => {
    await using node = await fakeNode({
      "DELETE /schedules/nightly": { status: "ok", name: "nightly" },
      "POST /schedules/nightly/pause": scheduleBody({ paused: true }),
      "POST /schedules/nightly/resume": scheduleBody(),
      "POST /schedules/nightly/trigger": { name: "nightly", job_id: JOB_ID },
    });
    const run = async (command: string): Promise<string> =>
      (await runCli(["schedules", command, "nightly", "--url", node.url])).out;
    assert.equal(await run("remove"), "nightly removed\n");
    assert.equal(await run("pause"), "nightly paused\n");
    assert.equal(await run("resume"), "nightly resumed, next at 2026-01-02T02:00:00.000Z\n");
    assert.equal(await run("trigger"), `${JOB_ID}\n`);
  });

  it("previews a timing, or a schedule by its name", async () => {
    const fires = ["2026-01-02T02:00:00.000Z", "2026-01-03T02:00:00.000Z"];
    await using node = await fakeNode({
      "POST /schedules/preview": { fires },
      "GET /schedules/nightly": scheduleBody(),
      "GET /schedules/nightly/preview": { name: "nightly", fires },
    });
    const timing = await runCli(["schedules", "preview", "--every", "1h", "--count", "2", "--url", node.url]);
    assert.equal(timing.out, `${fires.join("\n")}\n`);
    assert.deepEqual(node.asked[0]!.body, { every_ms: 3_600_000, count: 2 });
    const named = await runCli(["schedules", "preview", "nightly", "--url", node.url]);
    assert.equal(named.out, `${fires.join("\n")}\n`);
  });

  it("shows what fired and why not", async () => {
    const occurrences = [
      {
        at: "2026-01-01T02:00:00.000Z",
        outcome: "skipped",
        reason: "overlap",
        job_id: null,
        leader_epoch: 1,
        noted_at: "",
      },
      {
        at: "2025-12-31T02:00:00.000Z",
        outcome: "fired",
        reason: null,
        job_id: JOB_ID,
        leader_epoch: 1,
        noted_at: "",
      },
    ];
    await using node = await fakeNode({ "GET /schedules/nightly/history": { name: "nightly", occurrences } });
    const { out } = await runCli(["schedules", "history", "nightly", "--url", node.url]);
    assert.match(out, /^2026-01-01T02:00:00\.000Z {2}skipped {2}overlap$/m);
    assert.match(out, new RegExp(`^2025-12-31T02:00:00\\.000Z {2}fired +${JOB_ID}$`, "m"));
  });
});

describe("baton status and tasks", () => {
  it("show the node and what it promises", async () => {
    await using node = await fakeNode({
      "GET /status": {
        node: "node-1",
        incarnation: "i",
        version: "0.1.0",
        role: "LEADER",
        roles: ["gateway", "worker"],
        leader_epoch: 7,
        leader_id: "node-1",
        started_at: "2026-01-01T00:00:00.000Z",
        uptime_ms: 3_600_123,
        cluster: {
          name: "baton",
          active_nodes: 2,
          total_nodes: 3,
          formed: false,
          notes: ["the lease row alone is used"],
        },
        store: { name: "sqlite", durability: "power loss", shared: false },
        guarantees: {
          promised: ["No acknowledged job is lost."],
          not_promised: ["That a job runs only once."],
        },
      },
    });
    const { code, out } = await runCli(["status", "--url", node.url]);
    assert.equal(code, 0);
    assert.match(out, /^leader +node-1 \(epoch 7\)$/m);
    assert.match(out, /^up for +1h$/m);
    assert.match(out, /^roles +gateway, worker$/m);
    assert.match(out, /^cluster +baton \(2 of 3 nodes active, still forming\)$/m);
    assert.match(out, /^Notes\n {2}- the lease row alone is used$/m);
    assert.match(out, /^Not promised\n {2}- That a job runs only once\.$/m);
  });

  it("list the tasks", async () => {
    const tasks = [{ name: "hello", isolation: "thread", has_schema: true }];
    await using node = await fakeNode({ "GET /tasks": { tasks } });
    const { out } = await runCli(["tasks", "--url", node.url]);
    assert.equal(out, "TASK   RUNS IN     SCHEMA\nhello  own thread  yes\n");
  });
});
