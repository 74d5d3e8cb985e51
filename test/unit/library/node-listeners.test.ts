import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { JobId } from "../../../src/core/ids.ts";
import type { JobView } from "../../../src/jobs/job-service.ts";
import { aroundRuns, type BatonEvent, NodeListeners } from "../../../src/library/node-listeners.ts";
import type { JobRun } from "../../../src/jobs/run/job-run.ts";
import { NodeEvents } from "../../../src/platform/node-events.ts";
import { recordingLog } from "../../support/node-log.ts";

const id = "a-00000000-0000-7000-8000-000000000000" as JobId;
const run = { id, task: "mail", queue: "default", attempts: 2 };

function hearing(onError?: (error: Error) => unknown) {
  const log = recordingLog();
  const events = new NodeEvents(log);
  const listeners = new NodeListeners({ onError, log });
  const stored = {
    id,
    task: "mail",
    queue: "default",
    attempts: 3,
    error: { code: "QUARANTINED", message: "3 nodes died" },
  };
  listeners.hear(events, () => ({ get: async () => stored as unknown as JobView }));
  const told: [string, string][] = [];
  const listen = (...names: BatonEvent[]): void => {
    for (const name of names)
      listeners.on(name, (event) => told.push([name, "error" in event ? event.error.message : event.job.id]));
  };
  return { events, listeners, log, told, listen };
}

describe("the listeners of a program", () => {
  it("hear of a job that no run here has ended: its nodes died", async () => {
    const { events, told, listen } = hearing();
    listen("job.failed");
    events.emit("jobs.recovered", [
      { id, status: "failed", quarantined: true },
      { id, status: "queued", quarantined: false },
    ]);
    await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual(told, [["job.failed", "3 nodes died"]]);
  });

  it("hear of an interruption, and of nothing when a job was not begun", () => {
    const { events, told, listen } = hearing();
    listen("job.interrupted", "job.completed", "job.failed");
    events.emit("run.ended", { run, outcome: { kind: "interrupted" } });
    events.emit("run.ended", { run, outcome: { kind: "released" } });
    assert.deepEqual(told, [["job.interrupted", id]]);
  });

  it("get what was thrown where it is an error, else what was stored", () => {
    const seen: Error[] = [];
    const { events } = hearing((error) => seen.push(error));
    const thrown = new TypeError("as it was");
    const outcome = { kind: "failed", error: { code: "NO_STOCK", message: "sold out" } } as const;
    events.emit("run.ended", { run, outcome, thrown });
    events.emit("run.ended", { run, outcome, thrown: "a text" });
    assert.equal(seen[0], thrown);
    assert.deepEqual(
      [seen[1]!.message, (seen[1] as Error & { code: string }).code],
      ["sold out", "NO_STOCK"],
    );
  });

  it("may fail: it is logged, and the others are called", async () => {
    const { events, listeners, log, told, listen } = hearing(async () =>
      Promise.reject(new Error("no network")),
    );
    listeners.on("job.failed", () => {
      throw new Error("a slip");
    });
    listen("job.failed");
    events.emit("run.ended", { run, outcome: { kind: "failed", error: { code: "E", message: "bad" } } });
    await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual(told, [["job.failed", "bad"]]);
    assert.equal(log.about("a listener of the program failed"), 2);
  });
});

describe("functions around a run", () => {
  const none = {} as JobRun;

  it("cost nothing where there are none", () => assert.equal(aroundRuns([]), undefined));

  it("may replace the result, or throw in place of the handler", async () => {
    const shout = aroundRuns([async (_, next) => String(await next()).toUpperCase()])!;
    assert.equal(await shout(none, () => "it works"), "IT WORKS");
    const refuse = aroundRuns([
      () => {
        throw new Error("not now");
      },
    ])!;
    await assert.rejects(async () => refuse(none, () => "never"), /not now/);
  });
});
