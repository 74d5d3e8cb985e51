import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LOG_MESSAGE_LENGTH_MAX } from "../../../../src/jobs/run/job-run.ts";
import type { Handler, TaskContext } from "../../../../src/jobs/tasks/task.ts";
import { heldWorld, ran } from "../../../support/node-worker.ts";
import { columns } from "../../../support/columns.ts";

describe("logs and progress", () => {
  it("are there, in order, before the job is seen to be finished", async (t) => {
    const count = 500;
    const { world, id, job } = await ran(t, async (_payload, { log, progress }) => {
      for (let line = 0; line < count; line++) {
        log(`line ${line}`);
        progress((line / count) * 100);
        if (line % 7 === 0) await new Promise((resolve) => setImmediate(resolve));
      }
      progress(100, "done");
    });
    const expected = Array.from({ length: count }, (_, line) => `line ${line}`);
    assert.deepEqual(await world.logs(id), expected);
    assert.deepEqual([job.progress, job.progressMessage], [100, "done"]);
    const told = world.changes.filter((change) => change.id === id).map(({ status }) => status);
    assert.deepEqual([told[0], told.at(-1)], ["processing", "completed"], "followers hear of the end last");
    assert.ok(told.slice(1, -1).every((status) => status === null));
  });

  it("are stored while the handler runs", async (t) => {
    const { held, world } = await heldWorld(t, "held", "polite");
    const id = await world.running("held");
    const { log, progress } = held.started[0]!;
    log.warn("careful");
    progress(12.5, "an eighth");
    await world.rest();
    const job = await world.job(id);
    assert.deepEqual([job.progress, job.progressMessage], [12.5, "an eighth"]);
    const [line] = await world.store.jobs.logs(id, 0, 10);
    assert.deepEqual([line?.level, line?.message, line?.seq], ["warn", "careful", 1]);
  });

  it("are cut when a line is longer than anybody reads", async (t) => {
    const { world, id, job } = await ran(
      t,
      (_payload, { log, progress }) => (log("x".repeat(1_000_000)), progress(1, "y".repeat(1_000_000))),
    );
    const [line] = await world.logs(id);
    assert.ok(line!.endsWith("… (cut)") && line!.length <= LOG_MESSAGE_LENGTH_MAX + 10);
    assert.ok(job.progressMessage!.length <= LOG_MESSAGE_LENGTH_MAX + 10);
  });

  it("take whatever plain JavaScript passes, and a bad number is the handler's error", async (t) => {
    const careless = (_payload: unknown, context: TaskContext): void => {
      const { log, progress } = context as unknown as {
        log: (...args: unknown[]) => void;
        progress: (...args: unknown[]) => void;
      };
      log({ an: "object" });
      log(42, "fatal");
      log(undefined, { not: "a level" });
      progress(50, { some: "object" });
    };
    const { world, id, job } = await ran(t, careless);
    assert.equal(job.progressMessage, "[object Object]");
    const lines = await world.store.jobs.logs(id, 0, 10);
    assert.deepEqual(columns(lines, "level", "message"), [
      ["info", "[object Object]"],
      ["info", "42"],
      ["info", "undefined"],
    ]);
    for (const bad of [Number.NaN, "50", [50], 101, 5n]) {
      const run: Handler = (_payload, { progress }) => progress(bad as number);
      const { job: failed } = await ran(t, run, "failed", { maxAttempts: 1 });
      assert.match(failed.error!.message, /progress must be a number from 0 to 100/, String(bad));
    }
  });
});
