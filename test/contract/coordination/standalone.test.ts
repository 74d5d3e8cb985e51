import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Coordination } from "../../../src/leadership/coordination.ts";
import { column } from "../../support/columns.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import type { TermStore } from "../../../src/store/store.ts";
import { lifecycleStress } from "../../support/lifecycle-stress.ts";
import { candidate, granted } from "../../support/lock-candidates.ts";
import { MemoryTerms } from "../../support/lock-terms.ts";
import { openStandalone as open, openStandaloneMembership } from "../../support/lock-standalone.ts";
import { ROLE } from "../../support/lock-world.ts";
import { leaseLockContract } from "./contract.ts";
import { MANY, membershipContract } from "./membership.ts";

const SUPERSEDES = "a new candidate proves that the old process is gone, so it is never kept waiting";

leaseLockContract(
  "standalone",
  async () => {
    const clock = new ManualClock();
    const terms = new MemoryTerms();
    const opened: Coordination[] = [];
    const reopen = async () => {
      const coordination = open(clock, terms);
      opened.push(coordination);
      await coordination.start();
      return coordination.lock(ROLE);
    };
    return {
      lock: await reopen(),
      ttlMs: 1_000,
      rounds: 100,
      elapse: (ms) => clock.advance(ms),
      reopen,
      close: async () => {
        for (const coordination of opened) await coordination.stop();
      },
    };
  },
  {
    skip: {
      "of all who stand at once, exactly one is elected": SUPERSEDES,
      "any order of calls agrees with a plain lease": SUPERSEDES,
    },
  },
);

membershipContract("standalone", openStandaloneMembership(), {
  skip: Object.fromEntries(MANY.map((sentence) => [sentence, "a cluster of one"])),
});

describe("the standalone coordination", () => {
  test("a new candidate supersedes the holder at once, and the old term is over", async () => {
    await using coordination = open();
    await coordination.start();
    const lock = coordination.lock(ROLE);
    const old = await granted(lock, candidate("ada", "first life"), 1_000);
    const next = await granted(lock, candidate("ada", "second life"), 1_000);
    assert.ok(next.epoch > old.epoch);
    assert.equal(await lock.renew(old, 1_000), false);
    assert.deepEqual(await lock.read(), next);
  });

  test("the epoch grows at each start on the same store", async () => {
    const terms = new MemoryTerms();
    const epochs: number[] = [];
    for (let life = 0; life < 3; life++) {
      await using coordination = open(new ManualClock(), terms);
      await coordination.start();
      const lock = coordination.lock(ROLE);
      assert.equal(await lock.read(), null, "nobody leads in a process that has just started");
      epochs.push((await granted(lock, candidate("ada", `life ${life}`), 1_000)).epoch);
    }
    assert.deepEqual(epochs, [1, 2, 3]);
  });

  test("a grant that answers after a later one does not take its place", async () => {
    const terms = new MemoryTerms();
    const first = Promise.withResolvers<void>();
    let grants = 0;
    const slowFirst: TermStore = {
      grant: async (role, who) => {
        const turn = grants++;
        const term = await terms.grant(role, who);
        if (turn === 0) await first.promise;
        return term;
      },
      admit: (term) => terms.admit(term),
      read: (role) => terms.read(role),
    };
    await using coordination = open(new ManualClock(), slowFirst);
    await coordination.start();
    const lock = coordination.lock(ROLE);
    const late = lock.acquire(candidate("ada"), 1_000);
    const next = await granted(lock, candidate("bob"), 1_000);
    first.resolve();
    assert.equal(await lock.renew((await late)!, 1_000), false);
    assert.deepEqual(await lock.read(), next);
  });

  test("each role has one lock and epochs of its own", async () => {
    await using coordination = open();
    await coordination.start();
    assert.equal(coordination.lock("scheduler"), coordination.lock("scheduler"));
    await granted(coordination.lock("scheduler"), candidate("ada"), 1_000);
    await granted(coordination.lock("scheduler"), candidate("ada"), 1_000);
    const other = await granted(coordination.lock("log_compactor"), candidate("ada"), 1_000);
    assert.equal(other.role, "log_compactor");
    assert.equal(other.epoch, 1);
  });

  test("we are seen at any time, and people need to know nothing", async () => {
    const clock = new ManualClock(1_000);
    await using coordination = open(clock);
    await coordination.start();
    await clock.advance(50);
    assert.deepEqual(column(coordination.membership.nodes(), "lastSeenAt"), [1_050]);
    assert.deepEqual(coordination.notes(), []);
  });

  test("a lock rejects with STOPPED unless its coordination runs", async () => {
    const coordination = open();
    const lock = coordination.lock(ROLE);
    const stopped = { code: "STOPPED" };
    await assert.rejects(lock.acquire(candidate("ada"), 1_000), stopped);
    await coordination.start();
    const term = await granted(lock, candidate("ada"), 1_000);
    await coordination.stop();
    await assert.rejects(lock.renew(term, 1_000), stopped);
    await assert.rejects(lock.release(term), stopped);
    await assert.rejects(lock.read(), stopped);
  });

  lifecycleStress("standalone coordination", async () => ({
    service: open(),
    works: async (coordination) => void (await granted(coordination.lock(ROLE), candidate("ada"), 1_000)),
  }));
});
