import assert from "node:assert/strict";
import { it } from "node:test";
import { ManualClock } from "../../support/manual-clock.ts";
import { openStore } from "../../../src/store/open-store.ts";
import { memoryStore } from "../../support/memory-store.ts";
import { LEASE_MS, lease, StoreWorld } from "../../support/store-world.ts";
import { storeContract } from "./contract.ts";

storeContract("memory", async ({ clock }) => memoryStore({ clock }), { owns: true });

it("the setting `memory` opens a store whose data ends with it", async () => {
  const clock = new ManualClock();
  const store = await openStore({ kind: "memory", clock });
  assert.deepEqual(store.guarantees, {
    name: "memory",
    durability: "nothing",
    shared: false,
    keepsTokenFile: false,
  });
  await store.queues.setPaused("default", true);
  await store.close();
  await using next = await openStore({ kind: "memory", clock });
  assert.deepEqual(await next.queues.list(), []);
});

it("a wall clock that is set ends no lease in memory", () =>
  StoreWorld.with(
    async ({ clock }) => memoryStore({ clock }),
    async (world) => {
      await world.running();
      world.clock.setWall(world.clock.now() + 10 * LEASE_MS);
      assert.deepEqual(await world.recover(), []);
      assert.equal((await world.store.jobs.renew(lease("node-a/1"), LEASE_MS)).held, true);
      await world.clock.advance(LEASE_MS + 1);
      assert.equal((await world.recover()).length, 1);
    },
  ));
