import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { ConsoleCapture } from "../../../../src/jobs/run/console-capture.ts";
import type { Task } from "../../../../src/jobs/tasks/task.ts";
import { logsOf, nodeHere, resultOf, submit } from "../../../support/node-here.ts";

const TASKS = fileURLToPath(new URL("thread-tasks", import.meta.url));

/** The console of the test stays quiet, as far as these go. */
const chatty: Task = {
  name: "chatty",
  run: async (payload) => {
    console.log("begins with %s", payload);
    await new Promise((resolve) => setTimeout(resolve, 20));
    console.debug({ at: payload });
    console.warn("warned");
    console.error(new Error("shown").message);
  },
};

describe("what a handler writes to the console", () => {
  it("is in the log of its own job, with its level, also after it has waited beside others", async (t) => {
    const node = await nodeHere(t, { tasks: [chatty] });
    const ids = await Promise.all([1, 2, 3].map((payload) => submit(node, "chatty", { payload })));
    for (const [index, id] of ids.entries()) {
      await resultOf(node, id);
      const lines = await node.services.jobs.logs(id, 0, 100);
      assert.deepEqual(
        lines.map(({ level, message }) => [level, message]),
        [
          ["info", `begins with ${index + 1}`],
          ["debug", `{ at: ${index + 1} }`],
          ["warn", "warned"],
          ["error", "shown"],
        ],
      );
    }
  });

  it("stands between the lines of its own log, in the order in which they were written", async (t) => {
    const run: Task["run"] = (_, { log }) => {
      log("one");
      console.log("two");
      log.warn("three");
    };
    const node = await nodeHere(t, { tasks: [{ name: "both", run }] });
    const id = await submit(node, "both");
    await resultOf(node, id);
    assert.deepEqual(await logsOf(node, id), ["one", "two", "three"]);
  });

  it("is nowhere after the run, and not in the job that comes next", async (t) => {
    let late: Promise<void> = Promise.resolve();
    const forgetful: Task = {
      name: "forgetful",
      run: () => {
        late = new Promise((resolve) => setTimeout(resolve, 50)).then(() => console.log("too late"));
      },
    };
    const waits: Task = { name: "waits", run: () => late };
    const node = await nodeHere(t, { tasks: [forgetful, waits], settings: { WORKER__CONCURRENCY: "1" } });
    const first = await submit(node, "forgetful");
    await resultOf(node, first);
    const second = await submit(node, "waits");
    await resultOf(node, second);
    assert.deepEqual([await logsOf(node, first), await logsOf(node, second)], [[], []]);
  });

  it("is in the log of a job on a thread as well", async (t) => {
    const node = await nodeHere(t, { settings: { TASKS } });
    const ids = await Promise.all([1, 2].map((payload) => submit(node, "prints", { payload })));
    for (const [index, id] of ids.entries()) {
      await resultOf(node, id);
      assert.deepEqual(await logsOf(node, id), [`thread ${index + 1}`, "then"]);
    }
  });
});

describe("the console of a process", () => {
  it("is listened to only while a worker runs, and outside of runs nothing is kept", () => {
    const lines: string[] = [];
    const run = { over: false, addLine: (_: string, message: string) => void lines.push(message) };
    const captured = new ConsoleCapture();
    captured.during(run, () => console.debug("not yet"));
    captured.open();
    captured.open();
    console.debug("outside");
    captured.during(run, () => console.debug("inside"));
    captured.close();
    captured.during(run, () => console.debug("after"));
    assert.deepEqual(lines, ["inside"]);
  });

  it("does not fail for what cannot be shown", () => {
    const trap = new Proxy(
      {},
      {
        get: () => {
          throw new Error("a trap");
        },
      },
    );
    const lines: string[] = [];
    const run = { over: false, addLine: (_: string, message: string) => void lines.push(message) };
    const captured = new ConsoleCapture();
    captured.open();
    try {
      captured.during(run, () => console.debug("%s", { toString: trap }));
    } catch {
      // The console itself may throw.
    } finally {
      captured.close();
    }
    assert.ok(lines.length <= 1);
  });
});
