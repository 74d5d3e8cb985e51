import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ClaimBuffer } from "../../../../src/jobs/run/claim-buffer.ts";
import { ManualClock } from "../../../support/manual-clock.ts";
import type { ClaimedJob } from "../../../../src/store/store.ts";

function bufferOf(concurrency: number) {
  const clock = new ManualClock();
  const back: string[] = [];
  const buffer = new ClaimBuffer(clock, { concurrency, prefetchMax: 500 }, ({ id }) => back.push(id));
  return { clock, buffer, back };
}

const jobs = (...ids: string[]): ClaimedJob[] => ids.map((id) => ({ id }) as unknown as ClaimedJob);

describe("jobs that were claimed ahead", () => {
  it("go back when nothing ends, also if they are fewer than the slots", async () => {
    const { clock, buffer, back } = bufferOf(10);
    buffer.add(jobs("a", "b", "c"));
    assert.equal((buffer.take() as { id: string }).id, "a"); // the last free slot
    await clock.advance(500);
    assert.deepEqual(back, ["b", "c"]);
    assert.equal(buffer.size, 0);
  });

  it("are half gone once, while as many are left as run and wait then", () => {
    const { buffer } = bufferOf(2);
    buffer.add(jobs("a", "b", "c", "d", "e", "f"));
    const half: boolean[] = [];
    while (buffer.take()) half.push(buffer.halfGone);
    assert.deepEqual(half, [false, false, false, true, false, false]);
  });

  it("are as many as end in 100 ms, also after a pause of the process", async () => {
    const { clock, buffer } = bufferOf(10);
    assert.equal(buffer.pace, 0);
    await clock.advance(100);
    for (let n = 0; n < 40; n++) buffer.noteFinished();
    await clock.advance(300);
    assert.equal(buffer.pace, 10);
  });

  it("are foreseen from what has ended since the last claim, and not from a few quick jobs", async () => {
    const { clock, buffer } = bufferOf(10);
    await clock.advance(10_000);
    buffer.add(jobs("a", "b", "c", "d", "e"));
    while (buffer.take()) buffer.noteFinished();
    assert.equal(buffer.wanted(0), 60, "five in 10 ms at most: 50 in 100 ms, and the 10 places");
    await clock.advance(50);
    assert.equal(buffer.wanted(0), 20, "five in 50 ms");
  });

  it("stay as long as so many end between two looks", async () => {
    const { clock, buffer, back } = bufferOf(10);
    buffer.add(jobs("a", "b", "c", "d"));
    for (let n = 0; n < 2; n++) buffer.noteFinished();
    await clock.advance(500);
    assert.deepEqual(back, ["c", "d"]);
    await clock.advance(500);
    assert.deepEqual(back, ["c", "d", "a", "b"], "they are looked at again");
  });
});
