import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type Asked, fakeNode, JOB_ID, jobBody, OTHER_ID } from "../fake-node.ts";
import { runCli } from "../run-cli.ts";
import { columns } from "../../../support/columns.ts";

const BULK = "POST /cluster/jobs/bulk";

interface Body {
  readonly action: string;
  readonly filter: Record<string, string>;
  readonly dry_run?: boolean;
  readonly limit: number;
  readonly cursor?: string;
  readonly reason?: string;
}

/** A store with so many jobs, of which every seventh does not let itself be changed; pages as they are asked for. */
function many(total: number): (asked: Asked) => object {
  return ({ body }) => {
    const { dry_run: dry = false, limit, cursor = "0" } = body as Body;
    const from = Number(cursor);
    const matched = Math.min(limit, total - from);
    const skipped = dry ? 0 : Math.floor(matched / 7);
    return {
      body: {
        matched,
        changed: dry ? 0 : matched - skipped,
        skipped: Array.from({ length: Math.min(20, skipped) }, () => ({
          job_id: OTHER_ID,
          why: "it is running",
        })),
        skipped_count: skipped,
        next_cursor: from + matched < total ? String(from + matched) : null,
        partial: false,
      },
    };
  };
}

describe("baton jobs retry --all", () => {
  it("counts all pages, then changes all pages, and says what was left out", async () => {
    await using node = await fakeNode({ [BULK]: many(2_300) });
    const args = ["jobs", "retry", "--all", "--task", "resize", "--yes", "--url", node.url];
    const { code, out, err } = await runCli(args);
    assert.equal(code, 0, err);
    assert.equal(out, "1,974 jobs retried, 326 left as they are\n");
    assert.match(err, new RegExp(`^ {2}${OTHER_ID}: it is running$`, "m"));
    assert.match(err, /^ {2}and 306 more$/m);
    const bodies = node.asked.map(({ body }) => body as Body);
    assert.deepEqual(columns(bodies.slice(0, 3), "dry_run", "cursor"), [
      [true, undefined],
      [true, "1000"],
      [true, "2000"],
    ]);
    assert.deepEqual(bodies[3], {
      action: "retry",
      filter: { status: "failed", task: "resize" },
      limit: 500,
    });
    assert.equal(bodies.length, 3 + 5);
  });

  it("needs a yes where nobody can be asked, and changes nothing without one", async () => {
    await using node = await fakeNode({ [BULK]: many(3) });
    const { code, out, err } = await runCli(["jobs", "retry", "--all", "--url", node.url]);
    assert.deepEqual([code, out], [2, ""]);
    assert.match(err, /^error: Retry 3 failed jobs: confirmation needed\nhint: pass --yes/);
    assert.ok(node.asked.every(({ body }) => (body as Body).dry_run));
  });

  it("only counts with --dry-run, and says so when there are none", async () => {
    await using node = await fakeNode({ [BULK]: many(1) });
    const dry = await runCli(["jobs", "retry", "--all", "--dry-run", "--url", node.url]);
    assert.deepEqual([dry.code, dry.out], [0, "1 failed job would be retried\n"]);
    node.routes.set(BULK, many(0) as never);
    const none = await runCli(`jobs cancel --all --status queued --queue q --url ${node.url}`);
    assert.deepEqual([none.code, none.out], [0, "no queued jobs in queue q\n"]);
  });

  it("passes filters and the reason on, and gives programs the figures", async () => {
    await using node = await fakeNode({ [BULK]: many(2) });
    const filters = "--status queued --queue q --since 1h --until 2026-01-01T00:30:00Z --error-code E";
    const line = `jobs cancel --all ${filters} --reason no -y -o json --url ${node.url}`;
    const { code, out, err } = await runCli(line);
    assert.equal(code, 0, err);
    assert.deepEqual(JSON.parse(out), {
      action: "cancel",
      matched: 2,
      changed: 2,
      skipped_count: 0,
      skipped: [],
    });
    const { filter, reason } = node.asked.at(-1)!.body as Body;
    assert.deepEqual(filter, {
      status: "queued",
      queue: "q",
      since: "2026-01-01T00:00:00.000Z",
      until: "2026-01-01T00:30:00.000Z",
      error_code: "E",
    });
    assert.equal(reason, "no");
  });

  it("wants ids or --all, and not both", async () => {
    const cases: [string[], RegExp][] = [
      [[], /specify job ids or --all\nhint: see the ids/],
      [["--status", "failed"], /hint: add --all to change every job that matches the filters/],
      [[JOB_ID, "--all"], /give the ids of jobs, or --all with filters, not both/],
      [[JOB_ID, "--queue", "q"], /not both/],
    ];
    for (const [args, message] of cases) {
      const { code, err } = await runCli(["jobs", "delete", ...args, "--url", "http://127.0.0.1:1"]);
      assert.equal(code, 2, err);
      assert.match(err, message);
    }
  });
});

describe("baton jobs failures", () => {
  const group = (task: string, count: number, message: string) => ({
    task,
    code: "ERROR",
    message,
    count,
    first_at: "2026-01-01T00:00:00.000Z",
    last_at: "2026-01-01T00:30:00.000Z",
    example_job_id: JOB_ID,
    queues: ["default"],
  });
  const answer = {
    groups: [group("resize", 1_200, "no such host …"), group("mail", 3, "550\u001b[2J")],
    looked_at: 5_000,
    complete: false,
    partial: false,
  };

  it("are shown by error, the number of each before it", async () => {
    await using node = await fakeNode({ "GET /cluster/failures": answer });
    const { code, out, err } = await runCli(`jobs failures --task resize --since 1h --url ${node.url}`);
    assert.equal(code, 0);
    assert.deepEqual(out.split("\n"), [
      "#  COUNT  TASK    CODE   LAST     EXAMPLE                                      MESSAGE",
      `1  1,200  resize  ERROR  30m ago  ${JOB_ID}  no such host …`,
      `2  3      mail    ERROR  30m ago  ${JOB_ID}  550`,
      "",
    ]);
    assert.match(err, /^of the newest 5,000 failed jobs; there are more$/m);
    assert.deepEqual(node.asked[0]!.query, {
      since: "2026-01-01T00:00:00.000Z",
      task: "resize",
      limit: "20",
    });
  });

  it("are retried by their numbers, or all of them", async () => {
    await using node = await fakeNode({ "GET /cluster/failures": answer, [BULK]: many(3) });
    const one = await runCli(["jobs", "failures", "--retry", "2", "--yes", "--url", node.url]);
    assert.deepEqual([one.code, one.out], [0, "3 jobs retried\n"]);
    const { filter } = node.asked.at(-1)!.body as Body;
    assert.deepEqual(filter, {
      status: "failed",
      task: "mail",
      error_code: "ERROR",
      error_message: "550\u001b[2J",
    });
    const all = await runCli(["jobs", "failures", "--retry", "--yes", "--url", node.url]);
    assert.equal(all.out, "6 jobs retried\n");
    const none = await runCli(["jobs", "failures", "--retry", "7", "--yes", "--url", node.url]);
    assert.equal(none.code, 3);
    assert.match(none.err, /there is no group 7; there are 2/);
  });
});

describe("baton jobs show", () => {
  it("has the runs of a job, what happened to it and who had its events", async () => {
    const run = { worker: "node-1/1", leader_epoch: 4, started_at: "2026-01-01T00:00:01.000Z" };
    const event = { node: "node-1", job_epoch: 1, owner_epoch: 1, leader_epoch: 4 };
    const timeline = {
      job_id: JOB_ID,
      runs: [
        {
          ...run,
          job_epoch: 1,
          ended_at: "2026-01-01T00:00:03.500Z",
          outcome: "failed",
          error: { code: "E", message: "no host" },
        },
        { ...run, job_epoch: 2, ended_at: null, outcome: "running", error: null },
      ],
      events: [{ ...event, at: "2026-01-01T00:00:00.000Z", what: "submitted", message: null }],
      handoffs: [
        { at: "2026-01-01T00:00:02.000Z", from: "node-1", to: "node-2", owner_epoch: 2, reason: "drain" },
      ],
    };
    await using node = await fakeNode({
      [`GET /jobs/${JOB_ID}`]: jobBody({ status: "processing" }),
      [`GET /jobs/${JOB_ID}/timeline`]: timeline,
    });
    const { out } = await runCli(["jobs", "show", JOB_ID, "--url", node.url]);
    assert.match(
      out,
      /^Runs\nEPOCH +WORKER .*\n1 +node-1\/1 +4 +\S+ +2\.5s +failed +no host\n2 +.* 59m +running$/m,
    );
    assert.match(out, /^Timeline\nAT +WHAT.*\n2026-01-01T00:00:00\.000Z +submitted +node-1$/m);
    assert.match(out, /^Handed over\nAT .*\n\S+ +node-1 +node-2 +2 +drain$/m);
    const json = await runCli(["jobs", "show", JOB_ID, "-o", "json", "--url", node.url]);
    assert.deepEqual((JSON.parse(json.out) as { timeline: unknown }).timeline, timeline);
  });
});
