import assert from "node:assert/strict";
import { hostname } from "node:os";
import { describe, it } from "node:test";
import { SETTINGS, optionPath } from "../../../src/config/settings.ts";
import { readOptions } from "../../../src/library/node-options.ts";
import { seededRandom } from "../../support/seeded-random.ts";

const random = seededRandom(1);

function read(options: object) {
  return readOptions(options, random);
}

function refusal(options: object): {
  readonly message: string;
  readonly field: unknown;
  readonly code: unknown;
} {
  try {
    read(options);
  } catch (error) {
    const { message, details, code } = error as {
      message: string;
      details: { field: unknown };
      code: unknown;
    };
    return { message, field: details.field, code };
  }
  throw new Error("it was accepted");
}

describe("the options of createNode", () => {
  it("are the settings, in camel case, with durations and sizes as text or as numbers", () => {
    const { settings } = read({
      store: "memory",
      name: "here",
      worker: { concurrency: 3, queues: ["a"], lease: "20s", prefetchMax: 10 },
      http: { port: 0, bodyLimit: 2_048 },
      drain: { timeout: 9_000, cleanup: "1s" },
      retention: { completed: "30d" },
      cluster: { minimumNodes: 1 },
      dashboard: false,
    });
    assert.equal(settings.name, "here");
    assert.deepEqual(settings.worker.queues, ["a"]);
    assert.deepEqual([settings.worker.concurrency, settings.worker.leaseMs], [3, 20_000]);
    assert.deepEqual([settings.http.port, settings.http.bodyLimitBytes], [0, 2_048]);
    assert.deepEqual([settings.drain.timeoutMs, settings.drain.cleanupMs], [9_000, 1_000]);
    assert.equal(settings.retention.completedMs, 30 * 86_400_000);
    assert.equal(settings.dashboard.enabled, false);
  });

  it("have every setting", () => {
    for (const { path } of SETTINGS) assert.match(optionPath(path), /^[a-zA-Z]+(?:\.[a-zA-Z]+)?$/);
  });

  it("listen nowhere unless told so, read no file and no environment, and name each node anew", () => {
    process.env["BATON_WORKER__CONCURRENCY"] = "77";
    try {
      const [first, second] = [read({}), read({})];
      assert.equal(first.listens, false);
      assert.equal(read({ http: { port: 1 } }).listens, true);
      assert.equal(first.settings.worker.concurrency, 10);
      assert.equal(read({ config: true }).settings.worker.concurrency, 77);
      assert.notEqual(first.settings.name, second.settings.name);
      assert.ok(first.settings.name.startsWith(hostname().slice(0, 8)));
      assert.equal(
        read({ join: ["10.0.0.1:2222"] }).settings.name,
        read({ join: ["10.0.0.1:2222"] }).settings.name,
      );
    } finally {
      delete process.env["BATON_WORKER__CONCURRENCY"];
    }
  });

  it("take one value for a section that has one above all", () => {
    const { settings } = read({ store: "postgres://db/x", redis: "redis://r:6379", worker: false });
    assert.equal(settings.redis.url, "redis://r:6379");
    assert.deepEqual(settings.roles, ["gateway", "scheduler"]);
    assert.equal(read({ store: "sqlite:jobs.db" }).settings.store, `sqlite:${process.cwd()}/jobs.db`);
  });

  it("take tasks in a list, by name of their export, and as folders", () => {
    const task = { name: "a", run: () => null };
    const several = read({ tasks: [task, "./tasks"] });
    assert.deepEqual(several.tasks, [task]);
    assert.deepEqual(several.settings.tasks, ["./tasks"]);
    assert.deepEqual(read({ tasks: { task } }).tasks, [task]);
    assert.deepEqual(read({ tasks: "./tasks" }).settings.tasks, ["./tasks"]);
  });

  const refused: [options: object, field: string, message: RegExp][] = [
    [
      { worker: { conurrency: 3 } },
      "worker.conurrency",
      /worker\.conurrency is not an option; did you mean worker\.concurrency\?/,
    ],
    [{ strore: "memory" }, "strore", /strore is not an option; did you mean store\?/],
    [{ port: 8420 }, "port", /port is not an option; did you mean http\.port\?/],
    [
      { worker: { concurrency: "3" } },
      "worker.concurrency",
      /worker\.concurrency must be a whole number, not "3"/,
    ],
    [{ worker: 3 }, "worker", /worker must be an object such as \{ concurrency: … \}, not 3/],
    [{ drain: { timeout: "soon" } }, "drain.timeout", /drain\.timeout must be a duration such as/],
    [{ store: undefined }, "store", /store is undefined; leave it out for a file in \.baton/],
    [{ store: "sqlit" }, "store", /store must be .*did you mean sqlite\?/],
    [
      { tasks: [undefined] },
      "tasks[0]",
      /tasks\[0\] must be a task \(defineTask\) or the path of a folder, not undefined/,
    ],
    [{ use: [3] }, "use[0]", /use\[0\] must be a function \(context, next\), not 3/],
    [{ onError: "log" }, "onError", /onError must be a function, not "log"/],
    [{ schedules: {} }, "schedules", /schedules must be a list of schedules, not \{\}/],
    [{ telemetry: true }, "telemetry", /telemetry must be openTelemetry\(api\), not true/],
    [{ name: "a b" }, "name", /name must consist of/],
  ];
  for (const [options, field, message] of refused) {
    it(`are refused by name: ${JSON.stringify(options)}`, () => {
      const found = refusal(options);
      assert.deepEqual([found.code, found.field], ["BAD_OPTIONS", field]);
      assert.match(found.message, message);
    });
  }

  it("are refused all at once", () => {
    const { message } = refusal({ worker: { concurrency: -1 }, stroe: "memory", http: { port: 1e9 } });
    for (const name of ["worker.concurrency", "stroe", "http.port"])
      assert.ok(message.includes(name), message);
  });
});
