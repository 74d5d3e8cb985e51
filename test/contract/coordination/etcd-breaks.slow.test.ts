/** An etcd that forgets, stands still or is restarted: who leads, who lives, and under which epoch the store takes writes. */

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { ElectorSettings } from "../../../src/coordination/elector-settings.ts";
import { hasCode } from "../../../src/core/errors.ts";
import type { Term } from "../../../src/core/term.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { systemRandom } from "../../../src/platform/random.ts";
import { EtcdServer } from "../../support/etcd-server.ts";
import { candidate, granted } from "../../support/lock-candidates.ts";
import { EtcdElection, type EtcdStander } from "../../support/lock-etcd-election.ts";
import { EtcdCluster } from "../../support/lock-etcd.ts";
import { leads, standsBy, until } from "../../support/lock-redis-election.ts";
import { ROLE } from "../../support/lock-world.ts";
import { PostgresServer } from "../../support/postgres-server.ts";

let etcd: EtcdServer;
let postgres: PostgresServer;
before(async () => {
  [etcd, postgres] = await Promise.all([EtcdServer.start(), PostgresServer.start()]);
});
after(() => Promise.all([etcd.stop(), postgres.stop()]));

const ELECTION: ElectorSettings = { leaseMs: 1_500, renewMs: 300, marginMs: 300, retryMs: 150 };
/** The first renewal is far away: whoever steps down before was told. */
const SELDOM: ElectorSettings = { leaseMs: 30_000, renewMs: 10_000, marginMs: 7_500, retryMs: 150 };

const heldTerm = ({ elector }: EtcdStander, term: Term): boolean => elector.held()?.epoch === term.epoch;
const newest = (standers: readonly EtcdStander[]): Term | undefined =>
  standers.flatMap(({ elector }) => elector.held() ?? []).toSorted((a, b) => b.epoch - a.epoch)[0];

async function withServer(proof: (server: EtcdServer) => Promise<void>): Promise<void> {
  const own = await EtcdServer.start();
  try {
    await proof(own);
  } finally {
    await own.stop();
  }
}

/** Two nodes, one of which leads, and a fault; afterwards somebody leads under a higher epoch, and the old term may not write. */
async function survives(
  server: EtcdServer,
  settings: ElectorSettings,
  fault: (election: EtcdElection) => Promise<void>,
): Promise<void> {
  await using election = await EtcdElection.open(server, postgres);
  await using ada = await election.stander("ada", settings);
  const old = await leads(ada);
  await using bob = await election.stander("bob", settings);
  await standsBy(bob);
  assert.equal(await election.takes(old), true);

  await fault(election);
  const startedAt = systemClock.monotonic();
  await until("the end of the old term", () => !heldTerm(ada, old));
  assert.ok(systemClock.monotonic() - startedAt < 2_000, "the holder noticed too late");
  const next = await until("the next term", () => newest([ada, bob]));
  assert.ok(next.epoch > old.epoch, `epoch ${next.epoch} after ${old.epoch}`);
  assert.equal(await election.takes(old), false, "a stale write was taken");
  assert.equal(await election.takes(next), true);
}

void describe("an etcd that forgets", () => {
  void test("a key that an operator deleted: the holder steps down at once, and the next epoch is higher", () =>
    survives(etcd, SELDOM, ({ cluster }) => etcd.remove(cluster.key("leader", ROLE))));

  void test("a lease that an operator revoked: the same", () =>
    survives(etcd, SELDOM, async ({ cluster }) => {
      const [leader] = await etcd.entries(cluster.key("leader", ""));
      await etcd.revoke(leader!.lease);
    }));

  void test("a key that somebody wrote over: the same, with the next renewal", () =>
    survives(etcd, ELECTION, ({ cluster }) => etcd.put(cluster.key("leader", ROLE), "mine")));

  void test("everything of the cluster deleted: the same", () =>
    survives(etcd, SELDOM, ({ cluster }) => etcd.removeAll(cluster.key(""))));

  void test("a restart with nothing left: the same, though its revisions begin anew", () =>
    withServer(async (server) => {
      // So that epochs of before are above what the new one would give out.
      for (let i = 0; i < 300; i++) await server.put("ballast", String(i));
      await survives(server, ELECTION, async () => {
        await server.halt();
        await server.relaunch("empty");
      });
    }));

  void test("kill -9 and a restart with its data keeps the term", () =>
    withServer(async (server) => {
      await using election = await EtcdElection.open(server, postgres);
      await using ada = await election.stander("ada", { ...ELECTION, leaseMs: 10_000 });
      const term = await leads(ada);
      const lock = ada.coordination.lock(ROLE);
      const { leaseUntil } = (await lock.tenure())!;
      await server.halt();
      await server.relaunch();
      const renewed = await until("a renewal", async () => {
        const tenure = await lock.tenure().catch(() => null);
        return tenure && tenure.leaseUntil > leaseUntil && tenure;
      });
      assert.equal(renewed.epoch, term.epoch);
      assert.equal(ada.elector.held()?.epoch, term.epoch);
    }));

  void test("two nodes that were given two etcds: both may believe, one may write, and the other is told soon", () =>
    withServer(async (other) => {
      await using election = await EtcdElection.open(etcd, postgres);
      await using ada = await election.stander("ada", ELECTION);
      const old = await leads(ada);
      await using bob = await election.stander("bob", ELECTION, { url: other.url() });
      const next = await leads(bob);
      assert.ok(next.epoch > old.epoch);
      assert.equal(await election.takes(old), false);
      assert.equal(await election.takes(next), true);
      await until("ada is told", () => !heldTerm(ada, old));
    }));
});

void describe("an etcd that does not answer", () => {
  void test("stopped for two leases: the leader steps down by itself, and the next epoch is higher", () =>
    withServer(async (server) => {
      await using election = await EtcdElection.open(server, postgres);
      await using ada = await election.stander("ada", ELECTION);
      const old = await leads(ada);
      await using bob = await election.stander("bob", ELECTION);
      await standsBy(bob);
      server.pause();
      const stoppedAt = systemClock.monotonic();
      await until("ada steps down", () => ada.elector.held() === null);
      assert.ok(systemClock.monotonic() - stoppedAt < ELECTION.leaseMs);
      await systemClock.sleep(2 * ELECTION.leaseMs - (systemClock.monotonic() - stoppedAt));
      server.resume();
      const next = await until("the next term", () => newest([ada, bob]));
      assert.ok(next.epoch > old.epoch);
      assert.equal(await ada.coordination.lock(ROLE).renew(old, 60_000), false);
      assert.equal(await election.takes(old), false);
      assert.equal(await election.takes(next), true);
    }));

  void test("a call ends with its deadline, its outcome is unknown, and a grant that comes late keeps nobody out for long", () =>
    withServer(async (server) => {
      await using cluster = new EtcdCluster(server);
      const settings = { heartbeatMs: 50, deadAfterMs: 2_000, forgetAfterMs: 3_600_000 };
      const [ada, bob] = [await cluster.start("ada", { settings }), await cluster.start("bob", { settings })];
      server.pause();
      const startedAt = systemClock.monotonic();
      await assert.rejects(ada.lock(ROLE).acquire(candidate("ada"), 3_000), (error: unknown) => {
        assert.ok(hasCode(error, "STORE_UNAVAILABLE"), String(error));
        assert.equal(error.details["outcome"], "unknown");
        return true;
      });
      assert.ok(systemClock.monotonic() - startedAt < 1_800, "waited longer than its deadline");
      server.resume();
      const ask = () => bob.lock(ROLE).acquire(candidate("bob"), 3_000);
      const term = await until("bob's term", () => ask().catch(() => null));
      assert.equal(term.leader, "bob");
    }));

  void test("a pause below the deadline of a renewal costs nothing", async () => {
    await using cluster = new EtcdCluster(etcd);
    const identity = candidate("ada", systemRandom.uuid());
    const lock = (await cluster.start("ada", { identity })).lock(ROLE);
    const term = await granted(lock, identity, 60_000);
    etcd.pause();
    const renewing = lock.renew(term, 60_000);
    await systemClock.sleep(300);
    etcd.resume();
    assert.equal(await renewing, true);
    assert.equal(await lock.renew(term, 60_000), true);
  });
});
