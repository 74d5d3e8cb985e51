import { DEFAULT_BUDGETS } from "../../../../src/core/jobs/job.ts";
import { DispatchInbox } from "../../../../src/push/dispatch/dispatch-inbox.ts";
import { MemoryChannels } from "../../../../src/channels/memory/channels.ts";
import { StatusSink } from "../../../../src/push/dispatch/status-sink.ts";
import { systemClock } from "../../../../src/platform/clock.ts";
import { fakePlatform } from "../../../support/fake-platform.ts";
import { lifecycleStress } from "../../../support/lifecycle-stress.ts";
import { ManualClock } from "../../../support/manual-clock.ts";
import { memoryStore } from "../../../support/memory-store.ts";

const platform = fakePlatform({ clock: systemClock });

async function backend() {
  const clock = new ManualClock();
  const channels = new MemoryChannels({ clock });
  await channels.start();
  return { channels, store: memoryStore({ clock }), close: () => channels.stop() };
}

lifecycleStress("dispatch inbox", async () => {
  const { channels, store, close } = await backend();
  const service = new DispatchInbox(platform, {
    channels,
    ownership: store.ownership,
    store,
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
  return { service, close };
});

lifecycleStress("status sink", async () => {
  const { channels, store, close } = await backend();
  return { service: new StatusSink(platform, { channels, store, receiptMs: 5_000 }), close };
});
