import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { backlogOf, storeSnapshots } from "../../../src/observe/store-snapshots.ts";
import { BatonError } from "../../../src/core/errors.ts";
import type { Schedule } from "../../../src/core/schedules/schedule.ts";
import { memoryStore } from "../../support/memory-store.ts";
import type { Store } from "../../../src/store/store.ts";
import { StoreWorld } from "../../support/store-world.ts";

interface Looked {
  readonly world: StoreWorld;
  readonly looks: ReturnType<typeof storeSnapshots>;
  readonly backlog: ReturnType<typeof backlogOf>;
  readonly counts: { list: number };
  /** What a count of the queues takes, and whether the store answers at all. */
  readonly store: { takesMs: number; away: boolean };
}

function looked(
  proof: (looked: Looked) => Promise<void>,
  schedules: readonly Schedule[] = [],
): Promise<void> {
  return StoreWorld.with(
    async ({ clock }) => memoryStore({ clock }),
    async (world) => {
      const counts = { list: 0 };
      const state = { takesMs: 0, away: false };
      const check = (): void => {
        if (state.away) throw new BatonError("STORE_UNAVAILABLE", "it is gone");
      };
      const queues: Store["queues"] = {
        setPaused: (...given) => world.store.queues.setPaused(...given),
        isPaused: (queue) => world.store.queues.isPaused(queue),
        list: async () => {
          check();
          counts.list++;
          if (state.takesMs > 0) await world.clock.sleep(state.takesMs);
          return world.store.queues.list();
        },
      };
      const { jobs, samples, journal, agents } = world.store;
      const backlog = backlogOf(world, { queues, agents });
      const store = { jobs, samples, journal, problem: null };
      const looks = storeSnapshots(world, store, backlog, async () => schedules, 30_000);
      await proof({ world, looks, backlog, counts, store: state });
    },
  );
}

describe("a look at the store", () => {
  it("tells what is there", () =>
    looked(async ({ world, looks }) => {
      await world.submitMany(3);
      await world.submit({ queue: "p" });
      await world.store.queues.setPaused("p", true);
      const since = world.clock.now();
      await world.clock.advance(200);
      const [run] = await world.claim({ limit: 1 });
      await world.clock.advance(50);
      await world.finish(run!);
      const { jobs, waiting, times, countedAt, trouble } = await looks.read();
      assert.deepEqual([jobs.queued, jobs.completed, countedAt, trouble], [3, 1, world.clock.now(), null]);
      assert.deepEqual(waiting, [
        { queue: "default", since, paused: false },
        { queue: "p", since, paused: true },
      ]);
      assert.deepEqual(times, {
        wait: { p50: 200, p95: 200, p99: 200 },
        run: { p50: 50, p95: 50, p99: 50 },
        of: 1,
        failed: 0,
      });
    }));

  it("is one for all who ask within a second, and for those who only watch within five", () =>
    looked(async ({ world, looks, backlog, counts }) => {
      await Promise.all(Array.from({ length: 10 }, () => looks.read()));
      await looks.read();
      assert.equal(counts.list, 1);
      await world.clock.advance(1_000);
      await looks.read();
      assert.equal(counts.list, 2);
      await world.clock.advance(4_999);
      await backlog.get(100);
      assert.equal(counts.list, 2);
      await world.clock.advance(1);
      await backlog.get(100);
      assert.equal(counts.list, 3);
    }));

  it("lets a store rest that takes long to count, and does not make anybody wait for it", () =>
    looked(async ({ world, looks, counts, store }) => {
      store.takesMs = 300;
      const first = looks.read();
      await world.clock.advance(300);
      await first;
      await world.submit();
      for (let second = 1; second <= 6; second++) {
        await world.clock.advance(1_000);
        await looks.read(); // at once, or it would hang
      }
      assert.equal(counts.list, 2, "again after 20 times 300 ms");
      await world.clock.advance(300);
      assert.equal((await looks.read()).jobs.queued, 1);
    }));

  it("begins with the last sample while the first count goes on", () =>
    looked(async ({ world, looks, store }) => {
      const term = await world.store.terms.grant("metrics_aggregator", {
        name: "a" as never,
        incarnation: "1",
      });
      const jobs = { scheduled: 0, queued: 41, processing: 0, completed: 0, failed: 0, cancelled: 0 };
      await world.store.samples.note(
        JSON.stringify({ nodes: 1, jobs, finishedPerSecond: 0, load: {} }),
        term,
      );
      store.takesMs = 900;
      assert.equal((await looks.read()).jobs.queued, 41);
      await world.clock.advance(900);
      assert.equal((await looks.read()).jobs.queued, 0);
    }));

  it("says what is wrong with a store that does not answer, and goes on when it does", () =>
    looked(async ({ world, looks, store }) => {
      await world.submit();
      await looks.read();
      store.away = true;
      await world.clock.advance(5_000);
      const { trouble, jobs } = await looks.read();
      assert.equal(trouble, "it is gone");
      assert.equal(jobs.queued, 1, "as last known");
      store.away = false;
      await world.clock.advance(5_000);
      assert.equal((await looks.read()).trouble, null);
    }));

  it("counts refused writes of the last minutes, late schedules and living agents", () => {
    const schedule = (name: string, nextAt: number | null, paused = false): Schedule =>
      ({ name, nextAt, paused }) as Schedule;
    const late: Schedule[] = [];
    return looked(async ({ world, looks }) => {
      const now = world.clock.now();
      late.push(schedule("late", now - 5), schedule("paused", now - 5, true), schedule("next", now + 5));
      const entry = { kind: "write.refused", node: "a", actor: null, subject: null } as const;
      await world.store.journal.append([
        { ...entry, detail: { count: 3 }, agoMs: 1_000 },
        { ...entry, detail: { count: 500 }, agoMs: 3_600_000 },
        { ...entry, detail: {}, agoMs: 0 },
      ]);
      const agent = { capabilities: [], version: null, labels: "{}", running: 0 };
      await world.store.agents.seen([{ name: "one", ...agent }], await world.term());
      const look = await looks.read();
      assert.deepEqual(look.refused, { count: 4, lastAt: now });
      assert.deepEqual(look.late, [{ schedule: "late", dueAt: now - 5 }]);
      assert.equal(look.agents, 1);
    }, late);
  });
});
