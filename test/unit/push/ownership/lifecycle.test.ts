import assert from "node:assert/strict";
import { MemoryChannels } from "../../../../src/channels/memory/channels.ts";
import { Owner } from "../../../../src/push/ownership/owner.ts";
import { fakePlatform } from "../../../support/fake-platform.ts";
import { memoryStore } from "../../../support/memory-store.ts";
import { lifecycleStress } from "../../../support/lifecycle-stress.ts";
import { SETTINGS } from "./world.ts";

lifecycleStress("owner", async () => {
  const platform = fakePlatform();
  const { clock } = platform;
  const channels = new MemoryChannels({ clock });
  await channels.start();
  let heartbeats = 0;
  channels.subscribe("coordinator.heartbeat", () => void heartbeats++);
  const service = new Owner(platform, {
    ownership: memoryStore({ clock }).ownership,
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
    close: () => channels.stop(),
  };
});
