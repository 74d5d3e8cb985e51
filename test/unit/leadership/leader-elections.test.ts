import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LeaderElections } from "../../../src/leadership/leader-elections.ts";
import type { LeaderRole } from "../../../src/core/leadership/term.ts";
import { silentLog } from "../../../src/platform/log.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { seededRandom } from "../../support/seeded-random.ts";
import { candidate } from "../../support/lock-candidates.ts";
import { SETTINGS } from "../../support/lock-election.ts";
import { MemoryLeaseLock } from "../../support/lock-memory.ts";
import { openStandalone } from "../../support/lock-standalone.ts";

describe("a node whose name another has taken", () => {
  it("gives its terms up with the next renewal, and stands again when it is back in the list", async () => {
    const clock = new ManualClock();
    const identity = candidate("ada");
    const locks = new Map<LeaderRole, MemoryLeaseLock>();
    const lock = (role: LeaderRole): MemoryLeaseLock => {
      const known = locks.get(role) ?? new MemoryLeaseLock(role, clock);
      locks.set(role, known);
      return known;
    };
    let taken: string | null = null;
    const membership = { ...openStandalone().membership, displaced: () => taken };
    const leaders = new LeaderElections({
      coordination: {
        kind: "memory",
        lock,
        membership,
        notes: () => [],
        start: async () => {},
        stop: async () => {},
        [Symbol.asyncDispose]: async () => {},
      },
      identity,
      stands: () => true,
      settings: SETTINGS,
      clock,
      random: seededRandom(1),
      log: silentLog,
    });
    await leaders.start();
    await clock.advance(10);
    const first = leaders.scheduler.held();
    assert.ok(first);

    taken = "another has taken the name ada";
    await clock.advance(SETTINGS.renewMs + 10);
    assert.equal(leaders.scheduler.held(), null);
    assert.equal(await lock("scheduler").read(), null, "others need not wait for the end of its lease");
    await clock.advance(5 * SETTINGS.leaseMs);
    assert.equal(leaders.scheduler.held(), null, "and it does not stand again");

    taken = null;
    await clock.advance(2 * SETTINGS.retryMs);
    assert.ok(leaders.scheduler.held()!.epoch > first.epoch);
    await leaders.stop();
  });
});
