import { DEFAULT_BUDGETS } from "../../../../src/core/jobs/job.ts";
import { DispatchInbox } from "../../../../src/push/dispatch/dispatch-inbox.ts";
import { StatusSink } from "../../../../src/push/dispatch/status-sink.ts";
import { systemClock } from "../../../../src/platform/clock.ts";
import { fakePlatform } from "../../../support/fake-platform.ts";
import { lifecycleStress } from "../../../support/lifecycle-stress.ts";
import { memoryBackend } from "./world.ts";

const platform = fakePlatform({ clock: systemClock });

lifecycleStress("dispatch inbox", async () => {
  const backend = await memoryBackend();
  const service = new DispatchInbox(platform, {
    channels: await backend.channels("node"),
    ownership: backend.store.ownership!,
    store: backend.store,
    budgets: DEFAULT_BUDGETS,
    tasks: { names: () => new Set(["work"]) },
    settings: {
      concurrency: 1,
      queues: new Set(["default"]),
      exceptQueues: new Set(),
      heartbeatMs: 1_000,
    },
    signal: { raise: () => {} },
  });
  return { service, close: () => backend.close() };
});

lifecycleStress("status sink", async () => {
  const backend = await memoryBackend();
  const channels = await backend.channels("node");
  const service = new StatusSink(platform, { channels, store: backend.store, receiptMs: 5_000 });
  return { service, close: () => backend.close() };
});
