/** A duty of a leader that never comes back, in a whole node: the probe, the metrics and the log tell. */

import assert from "node:assert/strict";
import { it } from "node:test";
import { SqliteScripts } from "../../../src/store/sqlite/scripts.ts";
import { systemClock, type Clock } from "../../../src/platform/clock.ts";
import { defineTask } from "../../../src/jobs/tasks/task.ts";
import { recordingLog } from "../../support/node-log.ts";
import { nodeHere } from "../../support/node-here.ts";
import { eventually } from "../../support/wait.ts";
import { Scrape } from "../../support/prometheus-text.ts";

it("a leader whose store never answers one duty is not well, and well again when it does", async (t) => {
  let aheadMs = 0;
  const clock: Clock = {
    ...systemClock,
    now: () => systemClock.now() + aheadMs,
    monotonic: () => systemClock.monotonic() + aheadMs,
  };
  const answer = Promise.withResolvers<void>();
  // oxlint-disable-next-line typescript/unbound-method -- applied to the object that it was called on
  const { write } = SqliteScripts.prototype;
  let notes = 0;
  t.mock.method(
    SqliteScripts.prototype,
    "write",
    function (this: SqliteScripts, ...given: Parameters<typeof write>) {
      if (given[1]?.role !== "metrics_aggregator") return write.apply(this, given);
      notes++;
      return answer.promise;
    },
  );
  const log = recordingLog();
  const node = await nodeHere(t, {
    http: true,
    tasks: [defineTask({ name: "work", run: () => 1 })],
    clock,
    log,
    // The leap of the clock must not cost the term.
    settings: { LEADER__LEASE: "1h" },
  });
  const workz = async (status: number): Promise<{ code: string; reason: string }> =>
    eventually(`/workz to answer ${status}`, async () => {
      const found = await fetch(`${node.url}/workz`);
      const body = (await found.json()) as { code: string; reason: string };
      return found.status === status ? body : null;
    });

  await eventually("the duty to ask", async () => notes > 0 || null);
  assert.equal((await workz(200)).code, "working");
  aheadMs += 61_000;
  const { code, reason } = await workz(503);
  assert.equal(code, "duty_stuck");
  assert.match(reason, /^the leader's duty "metrics" has not come to an end for 6\d s/);
  assert.ok((await Scrape.of(node.url)).value("baton_duty_busy_seconds", { duty: "metrics" }) > 60);
  await eventually("the log to tell", async () => log.about("a leader's duty hangs") > 0 || null);
  assert.equal((await fetch(`${node.url}/livez`)).status, 200);

  answer.resolve();
  assert.equal((await workz(200)).code, "working");
  await eventually("the log to tell", async () => log.about("a leader's duty goes on") > 0 || null);
});
