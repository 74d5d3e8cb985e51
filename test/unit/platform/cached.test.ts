import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Cached } from "../../../src/platform/cached.ts";
import { ManualClock } from "../../support/manual-clock.ts";

function world(freshMs = 1_000) {
  const clock = new ManualClock();
  const reads: { resolve: (value: number) => void; reject: (error: Error) => void }[] = [];
  const cached = new Cached(
    clock,
    freshMs,
    () => new Promise<number>((resolve, reject) => void reads.push({ resolve, reject })),
  );
  return { clock, reads, cached };
}

describe("Cached", () => {
  it("reads once for all callers at the same time, and again when the value is old", async () => {
    const { clock, reads, cached } = world();
    const callers = [cached.read(), cached.read(), cached.get(50)];
    assert.equal(reads.length, 1);
    await clock.advance(20);
    reads[0]!.resolve(1);
    assert.deepEqual(await Promise.all(callers), [1, 1, 1]);
    await clock.advance(979);
    assert.equal(await cached.read(), 1, "its age counts from the beginning of its read");
    assert.equal(reads.length, 1);
    await clock.advance(1);
    const later = cached.read();
    reads[1]!.resolve(2);
    assert.equal(await later, 2);
    const eager = cached.read(0);
    reads[2]!.resolve(3);
    assert.equal(await eager, 3);
  });

  it("gives to callers of `next` a read that begins after their call, the same to all of them", async () => {
    const { clock, reads, cached } = world();
    const first = cached.next();
    const others = [cached.next(), cached.next()];
    assert.equal(reads.length, 1, "never two at once");
    reads[0]!.reject(new Error("away"));
    await assert.rejects(first, /away/);
    await clock.advance(0);
    assert.equal(reads.length, 2);
    const late = cached.next();
    reads[1]!.resolve(2);
    assert.deepEqual(await Promise.all(others), [2, 2]);
    await clock.advance(0);
    reads[2]!.resolve(3);
    assert.equal(await late, 3);
    void cached.next();
    assert.equal(reads.length, 4, "begins at once when no read runs, however new the value is");
  });

  it("passes the error of a read on to the callers of `read` alone, and does not keep it", async () => {
    const { reads, cached } = world();
    const asked = [cached.read(), cached.get(1_000)] as const;
    const away = new Error("away");
    reads[0]!.reject(away);
    await assert.rejects(asked[0], /away/);
    assert.equal(await asked[1], null);
    assert.deepEqual([cached.failures, cached.trouble], [1, "away"]);
    const again = cached.read();
    reads[1]!.resolve(2);
    assert.equal(await again, 2);
    assert.deepEqual([cached.failures, cached.trouble], [1, null]);
  });

  it("lets a caller of `get` wait only as long as it wants, and says that the source is late", async () => {
    const { clock, reads, cached } = world();
    assert.equal(await cached.get(0), null);
    const patient = cached.get(2_000);
    await clock.advance(999);
    assert.equal(cached.trouble, null);
    await clock.advance(1);
    assert.equal(cached.trouble, "no answer within 1000 ms");
    await clock.advance(1_000);
    assert.equal(await patient, null);
    reads[0]!.resolve(1);
    await clock.advance(0);
    assert.deepEqual([cached.value, cached.ageMs, cached.tookMs, reads.length], [1, 0, 2_000, 1]);
  });

  it("lets a slow source rest before `get` reads again", async () => {
    const { clock, reads, cached } = world();
    void cached.get(0);
    await clock.advance(100);
    reads[0]!.resolve(1);
    await clock.advance(1_999);
    assert.equal(await cached.get(0), 1);
    assert.equal(reads.length, 1, "20 times as long as the read took");
    await clock.advance(1);
    await cached.get(0);
    assert.equal(reads.length, 2);
  });
});
