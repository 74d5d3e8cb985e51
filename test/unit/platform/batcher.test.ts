import assert from "node:assert/strict";
import { describe, test } from "node:test";
import * as fc from "../../support/fast-check.ts";
import { Batcher } from "../../../src/platform/batcher.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { column } from "../../support/columns.ts";

const turn = (): Promise<void> => systemClock.turn();

describe("a batcher", () => {
  test("flushes a lone item at the end of the turn, without waiting for company", async () => {
    const batches: number[][] = [];
    const batcher = new Batcher<number, number>({
      clock: systemClock,
      flush: async (items) => {
        batches.push([...items]);
        return items.map((item) => item * 2);
      },
    });
    const added = batcher.add(21);
    assert.equal(batcher.size, 1);
    await turn();
    assert.deepEqual(batches, [[21]]);
    assert.equal(await added, 42);
    assert.equal(batcher.size, 0);
  });

  test("is idle when all that was added is flushed, also what was added meanwhile and what failed", async () => {
    const doors: (() => void)[] = [];
    const batcher = new Batcher<number, number>({
      clock: systemClock,
      flush: async (items) => {
        await new Promise<void>((resolve) => doors.push(resolve));
        if (items.includes(2)) throw new Error("not these");
        return items;
      },
    });
    await batcher.idle();
    const first = batcher.add(1);
    let idle = false;
    const waiting = batcher.idle().then(() => (idle = true));
    await turn();
    const second = assert.rejects(batcher.add(2), /not these/);
    doors.shift()!();
    await first;
    await turn();
    assert.equal(idle, false);
    doors.shift()!();
    await second;
    await waiting;
  });

  test("a flush that fails fails its own items only", async () => {
    let flushes = 0;
    const batcher = new Batcher<number, number>({
      clock: systemClock,
      batchMax: 2,
      flush: async (items) => {
        if (++flushes === 1) throw new Error("disk full");
        return items;
      },
    });
    const settled = await Promise.allSettled([1, 2, 3].map((item) => batcher.add(item)));
    assert.deepEqual(column(settled, "status"), ["rejected", "rejected", "fulfilled"]);
    assert.equal(await batcher.add(4), 4);
  });

  test("a flush that throws before it waits for anything is one that fails", async () => {
    const batcher = new Batcher<number, number>({
      clock: systemClock,
      flush: () => {
        throw new Error("at once");
      },
    });
    await assert.rejects(batcher.add(1), /at once/);
    await assert.rejects(batcher.add(2), /at once/);
  });

  test("everybody gets the result of its own item, in order, and no batch is too large", () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 0, max: 3 }), { maxLength: 40 }),
        fc.integer({ min: 1, max: 7 }),
        async (pauses, batchMax) => {
          const flushed: number[] = [];
          let flushing = false;
          const batcher = new Batcher<number, string>({
            clock: systemClock,
            batchMax,
            flush: async (items) => {
              assert.equal(flushing, false, "two flushes at a time");
              assert.ok(items.length >= 1 && items.length <= batchMax);
              flushing = true;
              flushed.push(...items);
              await turn();
              flushing = false;
              return items.map((item) => `did ${item}`);
            },
          });
          const results: Promise<string>[] = [];
          for (const [item, pause] of pauses.entries()) {
            results.push(batcher.add(item));
            for (let i = 0; i < pause; i++) await turn();
          }
          const expected = pauses.map((_, item) => `did ${item}`);
          assert.deepEqual(await Promise.all(results), expected);
          assert.deepEqual(flushed, [...pauses.keys()]);
        },
      ),
      { numRuns: 50 },
    ));
});
