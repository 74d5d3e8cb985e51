/** A leader is cut off from its database without a word: the connections stay open, and nothing passes (S25). */

import assert from "node:assert/strict";
import { it } from "node:test";
import { systemClock } from "../../../src/platform/clock.ts";
import { roleOf, TestCluster } from "../../support/cluster.ts";
import {
  assertNotReady,
  audit,
  LEASE_MS,
  LeaderWatch,
  logged,
  recovered,
  SHORT_LEASES,
  underLoad,
} from "../../support/database-faults.ts";
import { atEnd } from "../../support/node-cleanup.ts";
import { eventually } from "../../support/wait.ts";
import { TcpProxy } from "../../support/tcp-proxy.ts";

it("a leader that nothing passes to or from its database fences itself, is replaced, and comes back", async (t) => {
  const cluster = await TestCluster.open(t, { settings: SHORT_LEASES, server: { durable: true } });
  const proxy = await TcpProxy.start(cluster.url);
  atEnd(t, () => proxy.stop());
  const ada = await cluster.start("ada", { STORE: proxy.through(cluster.url) });
  const { epoch } = await cluster.leader();
  const { job_id: held } = await ada.client.submit({ task: "hold" });
  assert.equal((await ada.processing(held)).worker, "ada");
  const bob = await cluster.start("bob");
  const callers = await underLoad(t, cluster);
  const watch = new LeaderWatch(t, cluster);

  await proxy.freeze();
  const frozenAt = systemClock.monotonic();
  const frozenTime = Date.now();
  const submit = ada.post("/jobs", { task: "work", payload: { ms: 0 } }).catch(() => null);
  const next = await eventually("bob to lead", async () => {
    const role = await roleOf(bob);
    return role?.role === "LEADER"
      ? { epoch: role.leader_epoch!, ms: systemClock.monotonic() - frozenAt }
      : null;
  });
  const believed = watch.between(frozenAt, Infinity).filter(({ name }) => name === "ada");
  const fencedAfter = Math.max(0, ...believed.map(({ told }) => told - frozenAt));
  t.diagnostic(
    `it fenced itself after ${fencedAfter.toFixed(0)} ms and was replaced after ${next.ms.toFixed(0)} ms`,
  );
  // Trusted for its lease less the margin (300 ms), from the last renewal that was answered.
  assert.ok(fencedAfter < LEASE_MS - 300 + 250, `it believed in its term for ${fencedAfter} ms`);
  assert.ok(next.ms < LEASE_MS + 2_000, `replaced after ${next.ms} ms`);
  assert.equal(next.epoch, epoch + 1);
  await assertNotReady(ada);
  const again = await bob.jobWhen(held, ({ status, worker }) => status === "processing" && worker === "bob");
  assert.deepEqual([again.attempts, again.crashes, again.failures], [2, 1, 0]);
  const [lost] = await eventually("ada to give its job up", async () => {
    const lines = logged(ada, /the lease on running jobs is lost/);
    return lines.length > 0 ? lines : null;
  });
  const gaveUpAfter = Date.parse(lost!.time) - frozenTime;
  t.diagnostic(`its job ran elsewhere, and it gave it up after ${gaveUpAfter} ms of a lease of 4000 ms`);
  assert.ok(gaveUpAfter < 4_500, `after ${gaveUpAfter} ms`);

  await proxy.forward();
  const healed = systemClock.monotonic();
  await recovered(cluster);
  const role = await eventually("ada to stand by", async () => {
    const seen = await roleOf(ada);
    return seen?.role === "STANDBY" && seen.leader_id === "bob" ? seen : null;
  });
  t.diagnostic(
    `it stood by ${(systemClock.monotonic() - healed).toFixed(0)} ms after nothing was in the way`,
  );
  assert.equal(role.leader_epoch, next.epoch, "its return has changed nothing");
  const answer = await submit;
  if (answer) assert.ok(answer.status === 200 || answer.status === 503, `${answer.status}`);
  await bob.client.cancel(held);
  await audit(cluster, callers);
  await watch.stop();
  const late = watch.between(frozenAt + LEASE_MS, Infinity).filter(({ name }) => name === "ada");
  assert.deepEqual(late, [], "it never led again");
});
