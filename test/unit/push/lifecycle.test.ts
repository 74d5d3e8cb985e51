import assert from "node:assert/strict";
import { MemoryChannels } from "../../../src/channels/memory/channels.ts";
import { DEFAULT_BUDGETS } from "../../../src/core/jobs/job.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { DispatchInbox } from "../../../src/push/dispatch/dispatch-inbox.ts";
import { StatusSink } from "../../../src/push/dispatch/status-sink.ts";
import { Owner } from "../../../src/push/ownership/owner.ts";
import { fakePlatform } from "../../support/fake-platform.ts";
import { lifecycleStress } from "../../support/lifecycle-stress.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { memoryStore } from "../../support/memory-store.ts";
import { SETTINGS } from "./ownership/world.ts";

const platform = fakePlatform({ clock: systemClock });

async function backend() {
  const clock = new ManualClock();
  const channels = new MemoryChannels({ clock });
  await channels.start();
  return { clock, channels, store: memoryStore({ clock }), close: () => channels.stop() };
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

lifecycleStress("owner", async () => {
  const { clock, channels, store, close } = await backend();
  let heartbeats = 0;
  channels.subscribe("coordinator.heartbeat", () => void heartbeats++);
  const service = new Owner(fakePlatform({ clock }), {
    ownership: store.ownership,
    channels,
    membership: { nodes: () => [] },
    leadership: { held: () => null },
    dispatcher: { channels: () => [] },
    settings: { ...SETTINGS, rebalance: true },
  });
  return {
    service,
    nudge: () => clock.advance(100),
    works: async () => {
      const before = heartbeats;
      await clock.advance(2 * SETTINGS.heartbeatMs);
      assert.ok(heartbeats > before, "it is not heard");
      assert.deepEqual(await service.drain({ hurry: new AbortController().signal }), {
        handedOver: 0,
        finished: 0,
        orphaned: 0,
        released: 0,
      });
      await service.resume();
    },
    close,
  };
});
