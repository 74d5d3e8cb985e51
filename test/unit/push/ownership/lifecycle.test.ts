import assert from "node:assert/strict";
import { MemoryChannels } from "../../../../src/channels/memory/channels.ts";
import type { NodeName } from "../../../../src/core/ids.ts";
import { Owner } from "../../../../src/push/ownership/owner.ts";
import { silentLog } from "../../../../src/platform/log.ts";
import { ManualClock } from "../../../support/manual-clock.ts";
import { NodeEvents } from "../../../../src/platform/node-events.ts";
import { seededRandom } from "../../../support/seeded-random.ts";
import { memoryStore } from "../../../support/memory-store.ts";
import { lifecycleStress } from "../../../support/lifecycle-stress.ts";
import { SETTINGS } from "./world.ts";

lifecycleStress("owner", async () => {
  const clock = new ManualClock();
  const store = memoryStore({ clock });
  const channels = new MemoryChannels({ clock });
  await channels.start();
  let heartbeats = 0;
  channels.subscribe("coordinator.heartbeat", () => void heartbeats++);
  const service = new Owner({
    ownership: store.ownership,
    channels,
    membership: { nodes: () => [] },
    identity: { name: "a" as NodeName, incarnation: "a-1" },
    clock,
    random: seededRandom(1),
    log: silentLog,
    events: new NodeEvents(silentLog),
    state: { status: "active" },
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
