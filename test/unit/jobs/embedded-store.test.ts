import assert from "node:assert/strict";
import { statSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { openSqliteStore } from "../../../src/store/sqlite/store.ts";
import { StoreWorld, settleRuns } from "../../support/store-world.ts";

/** The store contract's world on the embedded store, with the size of its write-ahead log. */
async function embedded(proof: (world: StoreWorld, written: () => number) => Promise<void>): Promise<void> {
  let file = "";
  await StoreWorld.with(
    async ({ clock, dir }) => {
      file = join(dir, "baton.db-wal");
      const store = await openSqliteStore({ clock, dir });
      return store;
    },
    (world) => proof(world, () => statSync(file).size),
  );
}

describe("a worker on the embedded store that finds nothing to do", () => {
  it("writes nothing to the disk when it looks", () =>
    embedded(async (world, written) => {
      const id = await world.submit();
      await world.finish((await world.claim())[0]!);
      await world.submit({ task: "unknown" });
      await world.submit({ delayMs: 1_000_000 });
      await world.claim();
      const before = written();
      for (let looks = 0; looks < 10; looks++) {
        await world.clock.advance(1_000);
        assert.deepEqual(await world.claim(), []);
      }
      assert.equal(written(), before);
      assert.equal(await world.status(id), "completed");
    }));
});

describe("the embedded store's clean-up", () => {
  it("comes back to the oldest jobs soon, however many young ones there are", () =>
    embedded(async (world) => {
      const retention = { completedMs: 3_600_000, failedMs: 36_000_000, cancelledMs: 3_600_000 };
      const finish = async (count: number): Promise<void> => {
        await world.submitMany(count);
        const runs = await world.claim({ limit: count });
        const outcome = { kind: "completed", result: "null" } as const;
        await settleRuns(
          world.store,
          runs.map((run) => ({ run, outcome })),
        );
      };
      const purge = async (): Promise<number> =>
        world.store.purge({ of: "jobs", retention, limit: 100 }, await world.term());
      await finish(250);
      await world.clock.advance(1_800_000);
      await finish(2_000);
      for (let piece = 0; piece < 5; piece++) assert.equal(await purge(), 0, "all of them are young");
      await world.clock.advance(1_800_000);
      let removed = 0;
      for (let piece = 0; piece < 5; piece++) removed += await purge();
      assert.equal(removed, 250);
      assert.deepEqual(await world.counts(), { completed: 2_000 });
    }));
});
