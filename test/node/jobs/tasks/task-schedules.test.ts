import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import type { Schedule } from "../../../../src/core/schedules/schedule.ts";
import { originOf } from "../../../../src/jobs/schedules/schedule-origin.ts";
import { defineTask } from "../../../../src/jobs/tasks/task.ts";
import type { BatonNode } from "../../../../src/node/baton-node.ts";
import { z } from "zod";
import { nodeHere, temporaryDirectory } from "../../../support/node-here.ts";
import { eventually } from "../../../support/wait.ts";

const report = defineTask({
  name: "report",
  schema: z.object({ month: z.int() }),
  queue: "reports",
  retry: { attempts: 7 },
  schedules: [{ name: "monthly", cron: "0 4 1 * *", zone: "Europe/Berlin", payload: { month: 1 } }],
  run: () => "done",
});

const stored = (node: BatonNode): Promise<readonly Schedule[]> => node.services.schedules.list();

describe("schedules beside their tasks", () => {
  it("are stored when the node has started, with the defaults of their task", async (t) => {
    const node = await nodeHere(t, { tasks: [report] });
    const [schedule, ...others] = await stored(node);
    assert.deepEqual(others, []);
    const { name, timing, task, payload, queue, maxAttempts } = schedule!;
    assert.deepEqual(
      { name, timing, task, payload, queue, maxAttempts },
      {
        name: "monthly",
        timing: { kind: "cron", expression: "0 4 1 * *", zone: "Europe/Berlin" },
        task: "report",
        payload: '{"month":1}',
        queue: "reports",
        maxAttempts: 7,
      },
    );
    assert.equal(originOf(schedule!).origin, "code");
  });

  it("are exported by modules of a folder, given to a node, and fire", async (t) => {
    const dir = await temporaryDirectory(t);
    await writeFile(join(dir, "package.json"), '{ "type": "module" }');
    await writeFile(
      join(dir, "beat.ts"),
      `export const schedules = [{ name: "every-second", every: "1s", payload: { from: "module" } }];
export default (payload: { from: string }) => payload.from;`,
    );
    const node = await nodeHere(t, {
      settings: { TASKS: dir },
      tasks: [{ name: "other", run: () => null }],
      schedules: [{ name: "given", task: "other", every: 3_600_000 }],
    });
    assert.deepEqual((await stored(node)).map(({ name }) => name).sort(), ["every-second", "given"]);
    const fired = async () => (await node.services.jobs.list({ status: "completed", limit: 10 })).jobs;
    await eventually("the schedule fires", async () => (await fired()).length > 0);
    assert.equal((await fired())[0]!.schedule, "every-second");
  });

  it("of a task that is removed are paused at the next start, and go on when it is back", async (t) => {
    const data = await temporaryDirectory(t);
    const settings = { STORE: "", DATA: data };
    const first = await nodeHere(t, { tasks: [report], settings });
    await first.stop();
    const other = { name: "other", run: () => null };
    const second = await nodeHere(t, { tasks: [other], settings });
    const [dropped] = await stored(second);
    assert.deepEqual([dropped!.paused, originOf(dropped!).origin], [true, "dropped"]);
    assert.match(originOf(dropped!).note!, /task report was removed/);
    await second.stop();
    const third = await nodeHere(t, { tasks: [report, other], settings });
    const [back] = await stored(third);
    assert.deepEqual([back!.paused, originOf(back!).origin], [false, "code"]);
  });

  it("are shown as such, and cannot be removed meanwhile", async (t) => {
    const node = await nodeHere(t, { tasks: [report], http: true });
    const url = `${node.url}/schedules/monthly`;
    const shown = async () => (await (await fetch(url)).json()) as Record<string, unknown>;
    const before = await shown();
    assert.deepEqual([before["origin"], before["note"]], ["code", null]);
    const removed = await fetch(url, { method: "DELETE" });
    assert.deepEqual(
      [removed.status, ((await removed.json()) as { error: string }).error],
      [409, "SCHEDULE_DECLARED"],
    );
    const body = JSON.stringify({ task: "report", every_ms: 3_600_000, payload: { month: 2 } });
    await fetch(url, { method: "PUT", headers: { "content-type": "application/json" }, body });
    const after = await shown();
    assert.equal(after["origin"], "changed");
    assert.match(String(after["note"]), /changed by hand/);
  });

  it("that are wrong end the start of a node before anything is stored", async (t) => {
    const wrong = (payload: unknown) => ({ ...report, schedules: [{ ...report.schedules![0]!, payload }] });
    await assert.rejects(nodeHere(t, { tasks: [wrong({ month: "May" })] }), {
      code: "BAD_PAYLOAD",
      message: /^schedule monthly of task report: payload\.month: /,
    });
    await assert.rejects(nodeHere(t, { tasks: [{ ...report, schedules: {} as [] }] }), {
      code: "BAD_TASK",
      message: /schedules must be a list of schedules/,
    });
  });
});
