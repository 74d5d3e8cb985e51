import assert from "node:assert/strict";
import { LOG_LINES_MAX, type NewLogLine, type Report } from "../../../src/store/store.ts";
import { type Promises, reportRuns } from "../../support/store-world.ts";
import { columns } from "../../support/columns.ts";

export const reportPromises: Promises = {
  "reports and the end of their run may come in one batch, and are written once": async (world) => {
    const run = await world.running();
    const logs = [{ at: world.clock.now(), level: "info", message: "last words" }] as const;
    const outcome = { kind: "completed", result: "1" } as const;
    const batch = { reports: [{ run, logs, progress: null }], settlements: [{ run, outcome }] };
    const first = await world.store.jobs.record(batch);
    assert.deepEqual([first.reported, first.settled], [["accepted"], ["accepted"]]);
    const again = await world.store.jobs.record(batch);
    assert.deepEqual([again.reported, again.settled], [["stale"], ["replayed"]]);
    assert.equal((await world.logs(run.id)).length, 1);
    assert.equal(await world.status(run.id), "completed");
  },

  "log lines are kept as they were written, numbered from 1": async (world) => {
    const run = await world.running();
    const lines: NewLogLine[] = [
      { at: 17, level: "debug", message: "first" },
      { at: 18, level: "warn", message: "zweite Zeile ☂\nwith a break" },
      { at: 16, level: "error", message: "" },
    ];
    assert.deepEqual(await reportRuns(world.store, [{ run, logs: lines, progress: null }]), ["accepted"]);
    assert.deepEqual(
      [...(await world.logs(run.id))].map((line) => ({ ...line })),
      lines.map((line, index) => ({ ...line, seq: index + 1, jobEpoch: run.jobEpoch })),
    );
  },

  "a settlement does not overtake what was reported before it, although nobody waited for the answer": async (
    world,
  ) => {
    for (let n = 0; n < 20; n++) {
      const run = await world.running();
      const logs: NewLogLine[] = [{ at: 1, level: "info", message: "my last words" }];
      const reported = reportRuns(world.store, [{ run, logs, progress: null }]);
      await world.finish(run);
      assert.deepEqual(await reported, ["accepted"]);
      assert.equal((await world.logs(run.id)).length, 1);
    }
  },

  "several reports about several runs go in one batch": async (world) => {
    await world.submitMany(2);
    const [a, b] = await world.claim();
    const line = (message: string): NewLogLine => ({ at: 1, level: "info", message });
    const verdicts = await reportRuns(world.store, [
      { run: a!, logs: [line("a1")], progress: null },
      { run: b!, logs: [line("b1")], progress: { value: 0.5, message: null } },
      { run: a!, logs: [line("a2")], progress: null },
    ]);
    assert.deepEqual(verdicts, ["accepted", "accepted", "accepted"]);
    assert.deepEqual(columns(await world.logs(a!.id), "seq", "message"), [
      [1, "a1"],
      [2, "a2"],
    ]);
    assert.deepEqual(columns(await world.logs(b!.id), "seq", "message"), [[1, "b1"]]);
    assert.equal((await world.job(b!.id)).progress, 0.5);
  },

  "a reader resumes behind the last line it saw": async (world) => {
    const run = await world.running();
    await world.log(run, "1", "2", "3", "4", "5");
    const messages = async (after: number, limit: number): Promise<string> =>
      (await world.logs(run.id, after, limit)).map((line) => line.message).join("");
    assert.equal(await messages(0, 2), "12");
    assert.equal(await messages(2, 2), "34");
    assert.equal(await messages(4, 2), "5");
    assert.equal(await messages(5, 2), "");
    assert.equal(await messages(99, 2), "");
    assert.equal(await messages(Number.MAX_SAFE_INTEGER, 2), "", "for who wants none of them");
    assert.equal(await messages(0, 0), "");
  },

  "progress is shown with its message, the last one wins": async (world) => {
    const run = await world.running();
    await world.progress(run, 0.25, "a quarter");
    await world.clock.advance(5);
    assert.equal(await world.progress(run, 0.5), "accepted");
    const job = await world.job(run.id);
    assert.deepEqual([job.progress, job.progressMessage], [0.5, null]);
    assert.equal(job.updatedAt, world.clock.now());
    await world.log(run, "a report without progress leaves it");
    assert.equal((await world.job(run.id)).progress, 0.5);
    await world.progress(run, 1, "done");
    assert.deepEqual((await world.job(run.id)).progressMessage, "done");
  },

  "a report on a job that is not there is missing, and holds up no other": async (world) => {
    const run = await world.running();
    const ghost = { id: world.newId(), jobEpoch: 1, lease: run.lease };
    const report = (of: Report["run"]): Report => ({
      run: of,
      logs: [{ at: 1, level: "info", message: "x" }],
      progress: null,
    });
    assert.deepEqual(await reportRuns(world.store, [report(ghost), report(run)]), ["missing", "accepted"]);
    assert.deepEqual(await reportRuns(world.store, []), []);
    assert.equal((await world.logs(run.id)).length, 1);
  },

  "a job that logs without end keeps its first lines and says that it was cut off": async (world) => {
    const run = await world.running();
    const line = (index: number): NewLogLine => ({ at: index, level: "info", message: `line ${index}` });
    const flood = Array.from({ length: LOG_LINES_MAX - 50 }, (_, index) => line(index + 1));
    await reportRuns(world.store, [{ run, logs: flood, progress: null }]);
    const rest = Array.from({ length: 200 }, (_, index) => line(LOG_LINES_MAX - 49 + index));
    assert.deepEqual(await reportRuns(world.store, [{ run, logs: rest, progress: null }]), ["accepted"]);
    assert.equal(await world.log(run, "and more"), "accepted");

    const lines = await world.logs(run.id, 0, LOG_LINES_MAX + 100);
    assert.equal(lines.length, LOG_LINES_MAX);
    assert.ok(lines.every((entry, index) => entry.seq === index + 1));
    assert.equal(lines[LOG_LINES_MAX - 2]!.message, `line ${LOG_LINES_MAX - 1}`);
    const last = lines.at(-1)!;
    assert.equal(last.level, "warn");
    assert.match(last.message, /limit/);
    await world.finish(run);
  },

  "log numbers have no gaps across reports and runs of a job": async (world) => {
    const first = await world.running();
    await world.log(first, "a", "b");
    await world.log(first, "c");
    await world.settle(first, { kind: "interrupted" });
    const second = await world.again(first.id);
    await world.log(second, "d");
    await world.crash();
    const third = await world.again(first.id);
    await world.log(third, "e");
    await world.finish(third);
    const lines = await world.logs(first.id);
    assert.deepEqual(columns(lines, "seq", "message", "jobEpoch"), [
      [1, "a", first.jobEpoch],
      [2, "b", first.jobEpoch],
      [3, "c", first.jobEpoch],
      [4, "d", second.jobEpoch],
      [5, "e", third.jobEpoch],
    ]);
  },

  "every run starts with no progress": async (world) => {
    const run = await world.running();
    await world.progress(run, 0.8, "nearly");
    await world.settle(run, { kind: "interrupted" });
    await world.again(run.id);
    const job = await world.job(run.id);
    assert.deepEqual([job.progress, job.progressMessage], [null, null]);
  },

  "a stale run may neither log nor report progress": async (world) => {
    const old = await world.running();
    await world.log(old, "mine");
    await world.crash();
    assert.equal(await world.log(old, "while it waits"), "stale");
    const current = await world.again(old.id);
    await world.progress(current, 0.1);
    for (const end of [() => world.log(current, "next"), () => world.finish(current)]) {
      await end();
      assert.equal(await world.log(old, "too late"), "stale");
      assert.equal(await world.progress(old, 0.9), "stale");
    }
    assert.notEqual(await world.log(current, "after its end"), "accepted");
    assert.notEqual(await world.progress(current, 0.3), "accepted");
    assert.equal((await world.job(old.id)).progress, 0.1);
    assert.deepEqual(columns(await world.logs(old.id), "seq", "message"), [
      [1, "mine"],
      [2, "next"],
    ]);
  },
};
