import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ResultWriter } from "../../../../src/jobs/run/result-writer.ts";
import type { JobRun } from "../../../../src/jobs/run/job-run.ts";
import type { ClaimedJob, Recorded, Report, RunBatch } from "../../../../src/store/store.ts";
import { fakePlatform } from "../../../support/fake-platform.ts";

class HeldStore {
  readonly batches: RunBatch[] = [];
  readonly #answers: ((recorded: Recorded) => void)[] = [];
  readonly platform = fakePlatform();
  readonly writer = new ResultWriter(this.platform, {
    results: {
      record: (batch) => {
        this.batches.push(batch);
        return new Promise((resolve) => this.#answers.push(resolve));
      },
    },
    watch: { settling: () => () => {}, results: () => {} },
    onSent: () => {},
    onChange: () => {},
  });
  #jobs = 0;

  async settle(count: number): Promise<void> {
    for (let n = 0; n < count; n++) {
      const job = { id: `job-${this.#jobs++}`, jobEpoch: 1, lease: "w/1/0" } as unknown as ClaimedJob;
      this.writer.settle(job, { kind: "completed", result: "null" });
    }
    await this.platform.clock.advance(0);
  }

  async report(): Promise<void> {
    const run = { takeReport: () => ({ run: { id: "job-0" } }) as unknown as Report };
    this.writer.report(run as unknown as JobRun);
    await this.platform.clock.advance(0);
  }

  async answer(index: number): Promise<void> {
    const { reports, settlements } = this.batches[index]!;
    this.#answers[index]!({
      reported: reports.map(() => "accepted" as const),
      settled: settlements.map(() => "accepted" as const),
    });
    await this.platform.clock.advance(0);
  }

  sizes(): [number, number][] {
    return this.batches.map(({ reports, settlements }) => [reports.length, settlements.length]);
  }
}

describe("outcomes", () => {
  it("of a few runs wait for the write under way, and go together", async () => {
    const store = new HeldStore();
    await store.settle(1);
    await store.settle(3);
    await store.settle(4);
    assert.deepEqual(store.sizes(), [[0, 1]]);
    await store.answer(0);
    assert.deepEqual(store.sizes().slice(1), [[0, 7]]);
  });

  it("of many runs are written beside the write under way, up to three at a time", async () => {
    const store = new HeldStore();
    for (let n = 0; n < 5; n++) await store.settle(200);
    assert.deepEqual(store.sizes(), [
      [0, 200],
      [0, 200],
      [0, 200],
    ]);
    await store.answer(1);
    assert.deepEqual(store.sizes().slice(3), [[0, 400]]);
    assert.ok(store.writer.busy);
    for (const index of [0, 2, 3]) await store.answer(index);
    assert.ok(!store.writer.busy);
  });

  it("do not overtake reports, and reports overtake nothing", async () => {
    const store = new HeldStore();
    await store.report();
    await store.settle(200);
    assert.deepEqual(store.sizes(), [[1, 0]]);
    await store.answer(0);
    assert.deepEqual(store.sizes().slice(1), [[0, 200]]);
    await store.report();
    await store.settle(200);
    assert.equal(store.batches.length, 2);
    await store.answer(1);
    assert.deepEqual(store.sizes().slice(2), [[1, 200]]);
  });
});

describe("logs and progress", () => {
  it("are written at once after a pause, and then together every 100 ms", async () => {
    const store = new HeldStore();
    await store.report();
    await store.answer(0);
    for (let at = 0; at < 9; at++) {
      await store.report();
      await store.platform.clock.advance(10);
    }
    assert.deepEqual(store.sizes(), [[1, 0]]);
    await store.platform.clock.advance(10);
    assert.deepEqual(store.sizes().slice(1), [[9, 0]]);
  });

  it("are written with the next outcome, and with the last of a drain", async () => {
    const store = new HeldStore();
    await store.report();
    await store.answer(0);
    await store.report();
    await store.settle(1);
    assert.deepEqual(store.sizes().slice(1), [[1, 1]]);
    await store.answer(1);
    await store.report();
    const finished = store.writer.finish(() => null);
    await store.platform.clock.advance(0);
    await store.answer(2);
    await finished;
    assert.deepEqual(store.sizes().slice(2), [[1, 0]]);
  });
});
