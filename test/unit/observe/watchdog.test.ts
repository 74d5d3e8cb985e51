import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { watchdogOf } from "../../../src/observe/watchdog.ts";
import type { NodeName } from "../../../src/core/ids.ts";
import type { Term } from "../../../src/core/leadership/term.ts";
import { silentLog } from "../../../src/platform/log.ts";
import { ManualClock } from "../../support/manual-clock.ts";

const TERM: Term = { role: "scheduler", leader: "a" as NodeName, incarnation: "1", epoch: 1 };

function watched() {
  const clock = new ManualClock();
  const told: string[] = [];
  const log = {
    ...silentLog,
    error: (fields: object, message: string) => void told.push(`${message} ${JSON.stringify(fields)}`),
    info: (fields: object, message: string) => void told.push(`${message} ${JSON.stringify(fields)}`),
  };
  return { clock, told, watchdog: watchdogOf({ clock, log }, 10_000) };
}

describe("the watchdog", () => {
  it("knows a duty that rests from one that hangs, and tells of it once", async () => {
    const { clock, told, watchdog } = watched();
    let hang = false;
    const answer = Promise.withResolvers<void>();
    const duty = watchdog.duty("nodes", (time) => async (_term, signal) => {
      while (!signal.aborted) {
        if (hang) await answer.promise;
        await time.sleep(1_000, signal);
      }
    });
    const over = new AbortController();
    const running = duty(TERM, over.signal);
    await clock.advance(60_000);
    assert.deepEqual(watchdog.stuck(), []);
    hang = true;
    await clock.advance(1_000);
    await clock.advance(9_000);
    watchdog.look();
    assert.deepEqual([watchdog.stuck(), told], [[], []]);
    await clock.advance(2_000);
    watchdog.look();
    watchdog.look();
    assert.deepEqual(watchdog.stuck(), [{ duty: "nodes", busyMs: 11_000 }]);
    assert.deepEqual(told, ['a leader\'s duty hangs {"duty":"nodes","busyMs":11000}']);
    hang = false;
    answer.resolve();
    await clock.advance(1);
    watchdog.look();
    assert.equal(told[1], 'a leader\'s duty goes on {"duty":"nodes"}');
    over.abort();
    await clock.advance(1_000);
    await running;
    await clock.advance(60_000);
    assert.deepEqual(watchdog.busy(), [{ duty: "nodes", busyMs: 0 }]);
  });

  it("counts what throws within its term, and not what ends with it", async () => {
    const { watchdog } = watched();
    const over = new AbortController();
    const duty = watchdog.duty("leases", () => async () => Promise.reject(new Error("no")));
    await assert.rejects(duty(TERM, over.signal));
    over.abort();
    await assert.rejects(duty(TERM, over.signal));
    assert.deepEqual(watchdog.failures(), [{ duty: "leases", failures: 1 }]);
  });

  it("is not misled by a timer that outlives its duty", async () => {
    const { clock, watchdog } = watched();
    const duty = watchdog.duty("schedules", (time) => async () => {
      time.after(5_000, () => {});
    });
    await duty(TERM, new AbortController().signal);
    await clock.advance(60_000);
    assert.deepEqual(watchdog.stuck(), []);
  });
});
