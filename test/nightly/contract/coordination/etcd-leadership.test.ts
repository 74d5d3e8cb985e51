/** Leadership on etcd, and what only etcd must keep: short leases, clocks that differ, keys that nobody can read. */

import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, describe, test } from "node:test";
import { hasCode } from "../../../../src/core/errors.ts";
import { systemClock } from "../../../../src/platform/clock.ts";
import { EtcdServer } from "../../../support/etcd-server.ts";
import { tellTimes } from "../../../support/lock-admitted-election.ts";
import { candidate, granted } from "../../../support/lock-candidates.ts";
import { EtcdCluster, LeaseTime, openEtcdElection } from "../../../support/lock-etcd.ts";
import { ROLE } from "../../../support/lock-world.ts";
import { PostgresServer } from "../../../support/postgres-server.ts";
import {
  admittedLeadership,
  replaced,
  SHORT,
  TTL_MS,
  type AdmittedWorld,
} from "../../../contract/coordination/admitted-leadership.ts";
import { eventually } from "../../../support/wait.ts";
import { column } from "../../../support/columns.ts";

const [etcd, postgres] = await Promise.all([EtcdServer.start(), PostgresServer.shared()]);
after(() => Promise.all([etcd.stop(), postgres.stop()]));

const world: AdmittedWorld<EtcdCluster> = {
  kind: "etcd",
  cluster: (terms) => new EtcdCluster(etcd, terms),
  election: () => openEtcdElection(etcd, postgres),
  follows: (next, epoch) => assert.ok(next > epoch, `epoch ${next} after ${epoch}`),
  passing: (cluster, time) => {
    const leases = new LeaseTime(cluster, time);
    return (ms) => leases.pass(ms, TTL_MS);
  },
  deleteLeader: (cluster) => etcd.remove(cluster.key("leader", ROLE)),
  strangers: async (clusters) => [
    await clusters.use(new EtcdCluster(etcd)).start("ada"),
    await clusters.use(new EtcdCluster(etcd)).start("bob"),
  ],
};

admittedLeadership("etcd", world);

void describe("leadership on etcd", () => {
  for (const signal of ["SIGKILL", "SIGSTOP"] as const) {
    // The lease is below what etcd can count.
    void test(`after ${signal} of the leader's process the standby leads when its lease is over, though etcd counts in seconds`, async (t) => {
      const tookMs = await replaced(world, signal);
      tellTimes(t, "to the standby's term", [tookMs]);
      assert.ok(tookMs > SHORT.leaseMs - SHORT.renewMs - 100, `took ${tookMs} ms: before its lease was over`);
    });
  }

  void test("a standby whose wall clock is hours ahead takes nothing away", async () => {
    await using cluster = new EtcdCluster(etcd);
    const ahead = { ...systemClock, now: () => systemClock.now() + 7_200_000 };
    const ada = await cluster.start("ada");
    const bob = await cluster.start("bob", { time: ahead });
    const term = await granted(ada.lock(ROLE), candidate("ada"), 5_000);
    assert.equal(await bob.lock(ROLE).acquire(candidate("bob"), 5_000), null);
    assert.deepEqual(await bob.lock(ROLE).read(), term);
  });

  void test("a leader that comes new to a lease waits for all of it, or until etcd has ended it", async () => {
    await using cluster = new EtcdCluster(etcd);
    const ada = await cluster.start("ada");
    await granted(ada.lock(ROLE), candidate("ada"), 500);
    await systemClock.sleep(400);
    const bob = await cluster.start("bob");
    const startedAt = systemClock.monotonic();
    assert.equal(await bob.lock(ROLE).acquire(candidate("bob"), 500), null);
    await eventually("bob's term", () => bob.lock(ROLE).acquire(candidate("bob"), 500));
    assert.ok(systemClock.monotonic() - startedAt >= 495);
  });

  void test("the roles have keys of their own, each under a lease of its own", async () => {
    await using cluster = new EtcdCluster(etcd);
    const ada = await cluster.start("ada");
    await granted(ada.lock("scheduler"), candidate("ada"), TTL_MS);
    const compactor = await granted(ada.lock("log_compactor"), candidate("ada"), TTL_MS);
    const keys = await etcd.entries(cluster.key("leader", ""));
    assert.deepEqual(column(keys, "key"), [
      cluster.key("leader", "log_compactor"),
      cluster.key("leader", "scheduler"),
    ]);
    assert.equal((JSON.parse(keys[0]!.value) as { epoch: number }).epoch, compactor.epoch);
    assert.notEqual(keys[0]!.lease, keys[1]!.lease);
  });

  void test("an epoch lies above etcd's revision", async () => {
    await using cluster = new EtcdCluster(etcd);
    const ada = await cluster.start("ada");
    const first = await granted(ada.lock(ROLE), candidate("ada"), TTL_MS);
    const [entry] = await etcd.entries(cluster.key("leader", ""));
    assert.ok(first.epoch >= entry!.revision - 50 && first.epoch <= entry!.revision);
  });

  void test("a leader's key that nobody can read, or that is under no lease, keeps nobody out", async () => {
    await using cluster = new EtcdCluster(etcd);
    const ada = await cluster.start("ada");
    const lock = ada.lock(ROLE);
    for (const value of ["][", '{"leader":"zoe","incarnation":"zoe/1","epoch":9,"ttlMs":60000}']) {
      await etcd.put(cluster.key("leader", ROLE), value);
      assert.equal(await lock.read(), null);
      await lock.release(await granted(lock, candidate("ada"), TTL_MS));
    }
  });

  void test("something that is no etcd, and one that is not there, are told apart", async (t) => {
    await using cluster = new EtcdCluster(etcd);
    const other = createServer((_, response) => response.end("{}"));
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
    t.after(() => other.close());
    const url = `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
    await assert.rejects(cluster.start("ada", { url }), (error: unknown) => {
      assert.ok(hasCode(error, "BAD_CONFIG"), String(error));
      assert.match(error.message, /is no etcd/);
      return true;
    });
    await assert.rejects(cluster.start("ada", { url: "http://127.0.0.1:1" }), (error: unknown) => {
      assert.ok(hasCode(error, "STORE_UNAVAILABLE"), String(error));
      assert.match(error.message, /127\.0\.0\.1:1: ECONNREFUSED/);
      return true;
    });
  });
});
