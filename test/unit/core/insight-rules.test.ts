import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "../../support/fast-check.ts";
import {
  blanked,
  groupFailures,
  mergeGroups,
  type FailedJob,
} from "../../../src/core/jobs/failure-groups.ts";
import {
  runsOf,
  timelineOf,
  type TimelineJob,
  type TimelineRun,
} from "../../../src/core/jobs/job-timeline.ts";
import { termHistory, type TermEntry } from "../../../src/core/leadership/term-history.ts";
import { column, columns } from "../../support/columns.ts";

describe("messages of failures", () => {
  const same: readonly (readonly [string, string])[] = [
    ["user 17 is not known", "user # is not known"],
    ["timed out after 1,200.5 ms", "timed out after # ms"],
    ['no file "a b.txt" here', 'no file "…" here'],
    ["no file 'x' here", 'no file "…" here'],
    ["it can't be done, they don't know", "it can't be done, they don't know"],
    ["job n1-0198c0de-0000-7000-8000-00000000ab12 is gone", "job n#-… is gone"],
    ["commit deadbeef42 is bad", "commit … is bad"],
    ["connect ECONNREFUSED 127.0.0.1:5432", "connect ECONNREFUSED #"],
    ["", ""],
  ];
  for (const [message, text] of same) it(message, () => assert.equal(blanked(message), text));

  it("are the same however often they are blanked, and never long", () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 3_000 }), (message) => {
        const once = blanked(message);
        assert.ok(once.length <= 300);
        assert.equal(blanked(once), once);
      }),
    );
  });

  it("do not differ by their numbers", () => {
    fc.assert(
      fc.property(fc.nat(), fc.nat(), (a, b) => {
        assert.equal(blanked(`row ${a} of ${b}`), blanked(`row ${b} of ${a}`));
      }),
    );
  });
});

describe("groups of failures", () => {
  const job: fc.Arbitrary<FailedJob> = fc.record({
    id: fc.uuid(),
    task: fc.constantFrom("a", "b"),
    queue: fc.constantFrom("q", "p"),
    code: fc.constantFrom("ERROR", "TIMEOUT"),
    message: fc.constantFrom("no 1", "no 2", "other"),
    at: fc.nat(),
  });

  it("count every job once, and it does not matter who counted them", () => {
    fc.assert(
      fc.property(fc.array(job), fc.nat(20), (jobs, at) => {
        const groups = groupFailures(jobs);
        assert.equal(
          groups.reduce((sum, { count }) => sum + count, 0),
          jobs.length,
        );
        const apart = mergeGroups([...groupFailures(jobs.slice(0, at)), ...groupFailures(jobs.slice(at))]);
        const plain = (all: typeof groups): unknown =>
          new Set(all.map((group) => JSON.stringify({ ...group, example: "" })));
        assert.deepEqual(plain(apart), plain(groups));
        assert.ok(groups.length <= 2 * 2 * 2);
      }),
    );
  });

  it("tell the latest as their example", () => {
    const base = { task: "t", queue: "q", code: "ERROR" };
    const [group] = groupFailures([
      { ...base, id: "1", message: "no 1", at: 10 },
      { ...base, id: "2", message: "no 2", at: 30, queue: "p" },
      { ...base, id: "3", message: "no 3", at: 20 },
    ]);
    assert.deepEqual(group, {
      task: "t",
      code: "ERROR",
      message: "no #",
      count: 3,
      firstAt: 10,
      lastAt: 30,
      example: "2",
      queues: ["p", "q"],
    });
  });
});

describe("the history of terms", () => {
  const entry = (
    kind: "started" | "ended",
    epoch: number,
    at: number,
    over: Partial<TermEntry> = {},
  ): TermEntry => {
    return { kind, epoch, at, role: "scheduler", leader: "a", node: "a", reason: null, ...over };
  };

  it("is newest first, with the reason of each end", () => {
    const entries = [
      entry("started", 1, 10),
      entry("ended", 1, 20, { reason: "resigned" }),
      entry("started", 2, 21, { leader: "b", node: "b" }),
    ];
    assert.deepEqual(termHistory(entries), [
      { role: "scheduler", epoch: 2, leader: "b", startedAt: 21, endedAt: null, reason: null },
      { role: "scheduler", epoch: 1, leader: "a", startedAt: 10, endedAt: 20, reason: "resigned" },
    ]);
  });

  it("takes the leader's own word for the reason, and the next beginning for the end", () => {
    const entries = [
      entry("started", 1, 10),
      entry("started", 2, 50, { leader: "b", node: "b" }),
      entry("ended", 1, 50, { node: "b", reason: "a died" }),
      entry("ended", 1, 90, { reason: "not confirmed in time" }),
    ];
    const [, first] = termHistory(entries);
    assert.deepEqual([first!.endedAt, first!.reason], [50, "not confirmed in time"]);
  });

  it("ends what has a successor also where nobody told", () => {
    const [, first] = termHistory([entry("started", 1, 10), entry("started", 2, 50, { leader: "b" })]);
    assert.deepEqual([first!.endedAt, first!.reason], [50, "another term began"]);
  });

  it("keeps terms apart that every node has for itself", () => {
    const role = "log_compactor";
    const entries = ["a", "b"].map((leader) => entry("started", 1, 10, { role, leader, node: leader }));
    assert.equal(termHistory(entries, () => true).filter(({ endedAt }) => endedAt === null).length, 2);
  });

  it("never overlaps within a role, whatever was written", () => {
    const arbitrary = fc.array(
      fc.record({
        kind: fc.constantFrom("started" as const, "ended" as const),
        epoch: fc.integer({ min: 1, max: 6 }),
        at: fc.nat(1_000),
        role: fc.constant("scheduler"),
        leader: fc.constantFrom("a", "b"),
        node: fc.constantFrom("a", "b"),
        reason: fc.option(fc.string()),
      }),
    );
    fc.assert(
      fc.property(arbitrary, (entries) => {
        for (const { startedAt, endedAt } of termHistory(entries)) {
          assert.ok(endedAt === null || endedAt >= startedAt);
        }
      }),
    );
  });
});

describe("the story of a job", () => {
  const job: TimelineJob = {
    status: "completed",
    createdAt: 0,
    runAt: 0,
    startedAt: 50,
    finishedAt: 60,
    worker: "b",
    jobEpoch: 2,
    leaderEpoch: 7,
    error: null,
  };
  const failed: TimelineRun = {
    jobEpoch: 1,
    worker: "a",
    leaderEpoch: 7,
    startedAt: 10,
    endedAt: 20,
    outcome: "failed",
    error: { code: "ERROR", message: "no" },
  };

  it("is told in the order in which it happened", () => {
    const runs = runsOf(job, [failed]);
    assert.deepEqual(column(runs, "outcome"), ["failed", "completed"]);
    const handoff = { at: 30, from: null, to: "c", ownerEpoch: 2, reason: "node_crash" };
    const events = timelineOf(job, "a", runs, [handoff], []);
    assert.deepEqual(columns(events, "at", "what", "node", "message"), [
      [0, "submitted", "a", null],
      [10, "started", "a", null],
      [20, "failed", "a", "no"],
      [30, "handed_over", "c", "from nobody: node_crash"],
      [50, "started", "b", null],
      [60, "completed", "b", null],
    ]);
  });

  it("goes on while the job runs, and ends for one that never did", () => {
    const running = { ...job, status: "processing", finishedAt: null } as const;
    assert.equal(runsOf(running, []).at(-1)!.outcome, "running");
    const cancelled: TimelineJob = {
      ...job,
      status: "cancelled",
      startedAt: null,
      error: { code: "CANCELLED", message: "not wanted" },
    };
    const events = timelineOf(cancelled, null, runsOf(cancelled, []), [], []);
    assert.deepEqual(columns(events, "what", "message"), [
      ["submitted", null],
      ["cancelled", "not wanted"],
    ]);
  });
});
