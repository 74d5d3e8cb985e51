/** What only leadership on etcd must keep: several nodes, killed and stopped processes, short leases, a store that is away. */

import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, test } from "node:test";
import type { ElectorSettings } from "../../../src/coordination/elector-settings.ts";
import { hasCode } from "../../../src/core/errors.ts";
import type { Term } from "../../../src/core/term.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { ManualClock } from "../../../src/platform/manual-clock.ts";
import { EtcdServer } from "../../support/etcd-server.ts";
import { candidate, granted } from "../../support/lock-candidates.ts";
import { EtcdElection } from "../../support/lock-etcd-election.ts";
import { EtcdHolderProcess } from "../../support/lock-etcd-process.ts";
import { EtcdCluster, LeaseTime } from "../../support/lock-etcd.ts";
import { leads, standsBy, tellTimes, until } from "../../support/lock-redis-election.ts";
import { MemoryTerms } from "../../support/lock-terms.ts";
import { ROLE } from "../../support/lock-world.ts";
import { PostgresServer } from "../../support/postgres-server.ts";

let etcd: EtcdServer;
let postgres: PostgresServer;
before(async () => {
  [etcd, postgres] = await Promise.all([EtcdServer.start(), PostgresServer.start()]);
});
after(() => Promise.all([etcd.stop(), postgres.stop()]));

/** A standby that only polled would take seconds. */
const ELECTION: ElectorSettings = { leaseMs: 30_000, renewMs: 10_000, marginMs: 7_500, retryMs: 10_000 };
/** Below what etcd can count. */
const SHORT: ElectorSettings = { leaseMs: 900, renewMs: 200, marginMs: 200, retryMs: 100 };
const TTL_MS = 60_000;

function holderOf(election: EtcdElection, name: string, settings: ElectorSettings): EtcdHolderProcess {
  const { cluster, storeAt: store } = election;
  return new EtcdHolderProcess({
    etcd: etcd.url(),
    prefix: cluster.prefix,
    store,
    name,
    election: settings,
  });
}

void describe("leadership on etcd", () => {
  void test("a release lets the standby lead at once, at a lease of 30 s", async (t) => {
    await using election = await EtcdElection.open(etcd, postgres);
    await using ada = await election.stander("ada", ELECTION);
    await leads(ada);
    await using bob = await election.stander("bob", ELECTION);
    await standsBy(bob);
    const { epoch } = ada.elector.require();
    const startedAt = systemClock.monotonic();
    await ada.elector.stop();
    const term = await leads(bob);
    tellTimes(t, "from the stop to the standby's term", [systemClock.monotonic() - startedAt]);
    assert.ok(term.epoch > epoch);
    assert.ok(systemClock.monotonic() - startedAt < ELECTION.retryMs / 5);
  });

  for (const signal of ["SIGKILL", "SIGSTOP"] as const) {
    void test(`after ${signal} of the leader's process the standby leads when its lease is over, though etcd counts in seconds`, async (t) => {
      await using election = await EtcdElection.open(etcd, postgres);
      await using holder = holderOf(election, "struck", SHORT);
      const epoch = (await holder.next())!;
      const old = (await election.store.terms.read(ROLE))!;
      assert.equal(old.epoch, epoch);
      await using bob = await election.stander("bob", SHORT);
      await standsBy(bob);
      const startedAt = systemClock.monotonic();
      holder.signal(signal);
      const term = await leads(bob);
      const tookMs = systemClock.monotonic() - startedAt;
      tellTimes(t, "to the standby's term", [tookMs]);
      assert.ok(tookMs > SHORT.leaseMs - SHORT.renewMs - 100, `took ${tookMs} ms: before its lease was over`);
      assert.ok(tookMs < SHORT.leaseMs + 1_000, `took ${tookMs} ms`);
      assert.ok(term.epoch > epoch);
      assert.equal(await election.takes(old), false);
      assert.equal(await election.takes(term), true);
      if (signal === "SIGKILL") return;
      holder.signal("SIGCONT");
      assert.equal(await holder.next(), null, "awake again it says that its term is over");
      await systemClock.sleep(2 * SHORT.leaseMs);
      assert.equal(bob.elector.held()?.epoch, term.epoch, "the new term goes on");
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
    await until("bob's term", () => bob.lock(ROLE).acquire(candidate("bob"), 500));
    assert.ok(systemClock.monotonic() - startedAt >= 495);
  });

  void test("fifty candidates on ten nodes race: one is elected, epochs are unique and grow, however terms end", async () => {
    await using cluster = new EtcdCluster(etcd);
    const time = new ManualClock();
    const leases = new LeaseTime(cluster, time);
    const members = await Promise.all(
      Array.from({ length: 10 }, (_, i) => cluster.start(`node-${i}`, { time })),
    );
    let highest = 0;
    for (let round = 0; round < 12; round++) {
      const attempts = members.flatMap((member, node) =>
        Array.from({ length: 5 }, (_, i) => member.lock(ROLE).acquire(candidate(`c-${node}-${i}`), TTL_MS)),
      );
      const terms = (await Promise.all(attempts)).filter((term) => term !== null);
      assert.equal(terms.length, 1, `round ${round}: ${terms.length} were elected`);
      const [term] = terms as [Term];
      assert.ok(term.epoch > highest);
      highest = term.epoch;
      if (round % 3 === 0) await leases.pass(TTL_MS * 1.1, TTL_MS);
      else if (round % 3 === 1) await etcd.remove(cluster.key("leader", ROLE));
      else await members[round % 10]!.lock(ROLE).release(term);
    }
  });

  void test("two clusters on one etcd have leaders of their own, by prefix", async () => {
    await using one = new EtcdCluster(etcd);
    await using two = new EtcdCluster(etcd);
    const [ada, bob] = [await one.start("ada"), await two.start("bob")];
    const [first, second] = [ada.lock(ROLE), bob.lock(ROLE)];
    const held = await granted(first, candidate("ada"), TTL_MS);
    const other = await granted(second, candidate("bob"), TTL_MS);
    const over = new AbortController();
    let heard = 0;
    void (async () => {
      for await (const _ of second.released(over.signal)) heard += 1;
    })();
    await first.release(held);
    assert.deepEqual(await second.read(), other);
    assert.equal(heard, 0, "a release of another cluster was told");
    over.abort();
    for (const member of [ada, bob]) assert.equal(member.membership.nodes().length, 1);
  });

  void test("the roles have keys of their own, each under a lease of its own", async () => {
    await using cluster = new EtcdCluster(etcd);
    const ada = await cluster.start("ada");
    await granted(ada.lock("scheduler"), candidate("ada"), TTL_MS);
    const compactor = await granted(ada.lock("log_compactor"), candidate("ada"), TTL_MS);
    const keys = await etcd.entries(cluster.key("leader", ""));
    assert.deepEqual(
      keys.map(({ key }) => key),
      [cluster.key("leader", "log_compactor"), cluster.key("leader", "scheduler")],
    );
    assert.equal((JSON.parse(keys[0]!.value) as { epoch: number }).epoch, compactor.epoch);
    assert.notEqual(keys[0]!.lease, keys[1]!.lease);
  });

  void test("an epoch lies above etcd's revision, and above what the store remembers", async () => {
    const terms = new MemoryTerms();
    await using cluster = new EtcdCluster(etcd, terms);
    const ada = await cluster.start("ada");
    const lock = ada.lock(ROLE);
    const first = await granted(lock, candidate("ada"), TTL_MS);
    const [entry] = await etcd.entries(cluster.key("leader", ""));
    assert.ok(first.epoch >= entry!.revision - 50 && first.epoch <= entry!.revision);
    await lock.release(first);
    // As if another etcd had led the cluster meanwhile.
    const epoch = first.epoch + 1_000_000;
    await terms.admit({ role: ROLE, leader: candidate("zoe").name, incarnation: "zoe/1", epoch });
    assert.equal((await granted(lock, candidate("ada"), TTL_MS)).epoch, epoch + 1);
  });

  void test("while the store does not answer nobody is granted a term, and nobody is kept out for it", async () => {
    class AwayTerms extends MemoryTerms {
      away = false;
      override async admit(term: Term): Promise<boolean> {
        if (this.away) throw new Error("the store is away");
        return super.admit(term);
      }
    }
    const terms = new AwayTerms();
    await using cluster = new EtcdCluster(etcd, terms);
    const ada = await cluster.start("ada");
    const bob = await cluster.start("bob");
    terms.away = true;
    await assert.rejects(ada.lock(ROLE).acquire(candidate("ada"), TTL_MS), /the store is away/);
    assert.equal(await ada.lock(ROLE).read(), null);
    terms.away = false;
    await granted(bob.lock(ROLE), candidate("bob"), TTL_MS);
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
