import assert from "node:assert/strict";
import { tmpdir } from "node:os";
import { loadSettings } from "../../../src/config/load-settings.ts";
import { ThreadPool } from "../../../src/jobs/run/thread-pool.ts";
import { createNode } from "../../../src/node/baton-node.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { lifecycleStress } from "../../support/lifecycle-stress.ts";
import { resultOf, submit } from "../../support/node-here.ts";
import { WorkerWorld } from "../../support/node-worker.ts";

lifecycleStress("worker", async () => {
  const world = new WorkerWorld({ tasks: [["echo", (payload) => payload]] });
  await world.startAround();
  return {
    service: world.worker,
    works: async () => {
      const id = await world.submit("echo", { payload: 1 });
      await world.until(id, "completed");
    },
    nudge: () => world.advance(100),
    close: () => world.stop(),
  };
});

lifecycleStress("thread pool", async () => ({
  service: new ThreadPool({ clock: systemClock }, 100),
}));

lifecycleStress("node", async () => {
  const { settings } = loadSettings({ environment: { BATON_STORE: "memory" }, cwd: tmpdir() });
  const tasks = [{ name: "echo", run: (payload: unknown) => payload }];
  const service = await createNode({ http: false, settings, tasks });
  return {
    service,
    works: async () =>
      assert.equal(await resultOf(service, await submit(service, "echo", { payload: 1 })), 1),
    close: () => service.stop({ hurry: true }),
  };
});
