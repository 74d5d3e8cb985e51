import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "../../support/fast-check.ts";
import { InFlight } from "../../../src/platform/in-flight.ts";
import { ManualClock } from "../../support/manual-clock.ts";

function world(): { clock: ManualClock; inFlight: InFlight } {
  const clock = new ManualClock();
  return { clock, inFlight: new InFlight(clock) };
}

describe("what is in flight", () => {
  it("can be opened again, for a node that is started again", () => {
    const { inFlight } = world();
    const before = inFlight.closing;
    inFlight.close();
    assert.ok(inFlight.closing.aborted, "who asks late hears of it too");
    inFlight.open();
    assert.equal(inFlight.closed, false);
    assert.ok(inFlight.enter());
    assert.ok(before.aborted);
    assert.equal(inFlight.closing.aborted, false);
    const during = inFlight.closing;
    inFlight.open();
    assert.equal(inFlight.closing, during, "opening what is open changes nothing");
  });
});

describe("waiting until nothing is in flight", () => {
  it("ends at once when nothing is", async () => {
    const { clock, inFlight } = world();
    inFlight.close();
    assert.equal(await inFlight.drained(1_000), true);
    assert.equal(clock.waiting, 0);
  });

  it("ends with the last release, for everybody who waits, and leaves no timer", async () => {
    const { clock, inFlight } = world();
    const releases = [inFlight.enter()!, inFlight.enter()!];
    inFlight.close();
    const waits = [inFlight.drained(1_000), inFlight.drained(2_000)];
    releases[0]!();
    await clock.advance(500);
    assert.equal(clock.waiting, 2, "both still wait");
    releases[1]!();
    assert.deepEqual(await Promise.all(waits), [true, true]);
    assert.equal(clock.waiting, 0);
  });

  it("gives up after its time, and a release that comes later is still counted", async () => {
    const { clock, inFlight } = world();
    const release = inFlight.enter()!;
    inFlight.close();
    const late = inFlight.drained(1_000);
    await clock.advance(1_000);
    assert.equal(await late, false);
    assert.equal(inFlight.count, 1);
    release();
    release();
    assert.equal(inFlight.count, 0);
    assert.equal(await inFlight.drained(0), true);
  });

  it("does not wait at all when it is given no time", async () => {
    const { clock, inFlight } = world();
    inFlight.enter();
    const now = inFlight.drained(0);
    await clock.advance(0);
    assert.equal(await now, false);
  });
});

describe("whatever the order of entering, releasing and closing", () => {
  it("the count is that of those inside, and nobody enters behind a closed door", () => {
    const step = fc.oneof(
      fc.constant({ do: "enter" } as const),
      fc.nat(9).map((which) => ({ do: "release", which }) as const),
      fc.constantFrom({ do: "close" } as const, { do: "open" } as const),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const { inFlight } = world();
        const releases: (() => void)[] = [];
        const inside = new Set<number>();
        let closed = false;
        for (const each of steps) {
          if (each.do === "enter") {
            const release = inFlight.enter();
            assert.equal(release === null, closed);
            if (release) inside.add(releases.push(release) - 1);
          } else if (each.do === "release") {
            releases[each.which]?.();
            inside.delete(each.which);
          } else {
            closed = each.do === "close";
            inFlight[each.do]();
          }
          assert.equal(inFlight.count, inside.size);
          assert.equal(inFlight.closed, closed);
        }
      }),
    );
  });

  it("waits no longer when it is told to hurry, before or meanwhile", async () => {
    const { inFlight } = world();
    inFlight.enter();
    inFlight.close();
    const hurry = new AbortController();
    const drained = inFlight.drained(60_000, hurry.signal);
    hurry.abort();
    assert.equal(await drained, false);
    assert.equal(await inFlight.drained(60_000, hurry.signal), false);
  });
});
