/** What only leadership on PostgreSQL must keep: several sessions, broken ones, paused processes, an impatient standby. */

import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { leaderLock } from "../../../src/leadership/postgres/advisory-lock.ts";
import type { ElectorSettings } from "../../../src/leadership/elector.ts";
import { LEADER_ROLES } from "../../../src/core/leadership/term.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { applicationPrefix } from "../../../src/platform/drivers/postgres/session.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { systemRandom } from "../../../src/platform/random.ts";
import { leads, tellTimes } from "../../support/lock-admitted-election.ts";
import { candidate, granted } from "../../support/lock-candidates.ts";
import { electorOf, type MemberOptions } from "../../support/lock-cluster.ts";
import { PostgresCluster } from "../../support/lock-postgres.ts";
import { HolderProcess } from "../../support/lock-process.ts";
import { ROLE } from "../../support/lock-world.ts";
import { PostgresServer } from "../../support/postgres-server.ts";
import { raceOn } from "./race.ts";
import { eventually } from "../../support/wait.ts";

const server = await PostgresServer.shared();
after(() => server.stop());

/** A standby that leads before half of such a lease did not wait for its end. `npm run bench:failover` has the times. */
const ELECTION: ElectorSettings = { leaseMs: 20_000, renewMs: 1_000, marginMs: 1_500, retryMs: 500 };
const TTL_MS = 60_000;

/** A node that stands for all roles. */
async function standerForAll(cluster: PostgresCluster, name: string) {
  const identity = candidate(name, systemRandom.uuid());
  const coordination = await cluster.start(name, { identity });
  const electors = LEADER_ROLES.map((role) => electorOf(identity, coordination, ELECTION, role));
  for (const elector of electors) await elector.start();
  return {
    electors,
    [Symbol.asyncDispose]: async () => void (await Promise.all(electors.map((elector) => elector.stop()))),
  };
}

function holderOf(
  { url, schema }: PostgresCluster,
  name: string,
  options: { readonly election?: ElectorSettings; readonly transaction?: boolean } = {},
): HolderProcess {
  return new HolderProcess({ store: { url, schema }, name, election: ELECTION, ...options });
}

/** Blocked sessions on advisory locks of leaders, as the server sees them. */
async function inLine(cluster: PostgresCluster): Promise<number> {
  const rows = await cluster.sql(
    `SELECT count(*)::int AS n FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
       AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
  );
  return rows[0]!["n"] as number;
}

const somebodyWaits = (cluster: PostgresCluster): Promise<boolean> =>
  eventually("a standby in line", async () => (await inLine(cluster)) > 0);

const endLockSession = (cluster: PostgresCluster): Promise<unknown> =>
  cluster.sql(
    `SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted
       AND (classid::bigint << 32) | objid::bigint = ${leaderLock(ROLE, cluster.schema)}`,
  );

void describe("leadership on postgres", () => {
  void test("a standby leads when the leader's session ends, long before its lease does", async (t) => {
    await using cluster = await PostgresCluster.open(server);
    await using ada = await cluster.stander("ada", ELECTION);
    await using bob = await cluster.stander("bob", ELECTION);
    const times: number[] = [];
    for (let round = 0; times.length < 5; round++) {
      assert.ok(round < 10, "the old leader was mostly sooner than who stood in line");
      const leader = await eventually("a leader", () => [ada, bob].find(({ elector }) => elector.held()));
      const { epoch } = leader.elector.require();
      await somebodyWaits(cluster);
      const startedAt = systemClock.monotonic();
      await endLockSession(cluster);
      const next = await eventually("another term", () =>
        [ada, bob].find(({ elector }) => (elector.held()?.epoch ?? 0) > epoch),
      );
      assert.equal(next.elector.require().epoch, epoch + 1);
      // The standby leaves the line now and then to look around, and the one whose session ended comes back at once.
      if (next === leader) continue;
      times.push(systemClock.monotonic() - startedAt);
      await eventually("the old leader knows", () => leader.elector.held() === null);
    }
    tellTimes(t, "from pg_terminate_backend to the standby's term", times);
    assert.ok(Math.max(...times) < ELECTION.leaseMs / 2, `took ${times.join(", ")} ms`);
  });

  void test("a standby that waits keeps no dead row from being removed", async () => {
    await using cluster = await PostgresCluster.open(server);
    await using ada = await cluster.stander("ada", ELECTION);
    await leads(ada);
    await using _bob = await cluster.stander("bob", ELECTION);
    await somebodyWaits(cluster);
    const [mark] = await cluster.sql("SELECT pg_current_xact_id()::text AS xid");
    await eventually("everybody to look at what came later", async () => {
      const [oldest] = await cluster.sql(
        `SELECT coalesce(min(backend_xmin::text::bigint), 9e18::bigint) > ${String(mark!["xid"])} AS later FROM pg_stat_activity
           WHERE datname = current_database() AND pid <> pg_backend_pid()`,
      );
      return oldest!["later"] as boolean;
    });
    await somebodyWaits(cluster);
  });

  void test("a leader whose term somebody deleted from the database steps down, and the next epoch is higher", async () => {
    await using cluster = await PostgresCluster.open(server);
    await using ada = await cluster.stander("ada", ELECTION);
    const { epoch } = await leads(ada);
    await cluster.sql(`DELETE FROM ${cluster.schema}.term`);
    await eventually("the end of the term", () => ada.elector.held()?.epoch !== epoch);
    assert.ok((await leads(ada)).epoch > epoch);
  });

  void test("all roles of a leader whose session ended have a new term, long before its lease ends", async () => {
    await using cluster = await PostgresCluster.open(server);
    await using ada = await standerForAll(cluster, "ada");
    await eventually("all roles", () => ada.electors.every((elector) => elector.held()));
    await using bob = await standerForAll(cluster, "bob");
    await somebodyWaits(cluster);
    assert.equal(await inLine(cluster), 1, "one session waits for all roles");
    const before = ada.electors.map((elector) => elector.require().epoch);
    const startedAt = systemClock.monotonic();
    await endLockSession(cluster);
    // The one whose session ended is a candidate again at once, and may get some of them back.
    const next = (at: number): number | undefined =>
      (ada.electors[at]!.held() ?? bob.electors[at]!.held())?.epoch;
    await eventually("all roles", () => before.every((epoch, at) => (next(at) ?? 0) > epoch));
    const tookMs = systemClock.monotonic() - startedAt;
    assert.ok(tookMs < ELECTION.leaseMs / 2, `took ${tookMs} ms`);
  });

  void test("a leader of one role gets another one whose leader is gone, and renews its own meanwhile", async () => {
    await using cluster = await PostgresCluster.open(server);
    await using ada = await standerForAll(cluster, "ada");
    await eventually("all roles", () => ada.electors.every((elector) => elector.held()));
    await using bob = await standerForAll(cluster, "bob");
    await somebodyWaits(cluster);
    const [first, second] = ada.electors;
    await second!.resign();
    await eventually("the resigned role", () => bob.electors[1]!.held());
    const kept = first!.require();
    await systemClock.sleep(2 * ELECTION.renewMs);
    assert.deepEqual(first!.held(), kept, "its term goes on");
    await ada[Symbol.asyncDispose]();
    await eventually("all roles", () => bob.electors.every((elector) => elector.held()));
  });

  void test("a leader stopped inside a transaction is replaced when its lease has ended, and cannot commit", async (t) => {
    await using cluster = await PostgresCluster.open(server);
    const election = { leaseMs: 1_500, renewMs: 300, marginMs: 400, retryMs: 500 };
    await using holder = holderOf(cluster, "paused", { election, transaction: true });
    const epoch = (await holder.leads())!;
    assert.deepEqual(await holder.next(), { inTransaction: true });
    await using bob = await cluster.stander("bob", election);
    await somebodyWaits(cluster);

    holder.signal("SIGSTOP");
    holder.commit();
    const startedAt = systemClock.monotonic();
    const term = await leads(bob);
    const tookMs = systemClock.monotonic() - startedAt;
    t.diagnostic(
      `from SIGSTOP to the standby's term: ${tookMs.toFixed(0)} ms at a lease of ${election.leaseMs} ms`,
    );
    assert.equal(term.epoch, epoch + 1);

    holder.signal("SIGCONT");
    const news = [await holder.next(), await holder.next()];
    assert.deepEqual(
      new Set(news.map((each) => JSON.stringify(each))),
      new Set(['{"commit":"refused"}', '{"leads":null}']),
    );
    assert.deepEqual(await cluster.sql("SELECT name FROM baton.queue WHERE name LIKE 'written-by%'"), []);
    assert.equal((await bob.coordination.lock(ROLE).read())?.epoch, term.epoch);
  });

  void test("nobody is evicted while the lease is valid", async () => {
    await using cluster = await PostgresCluster.open(server);
    await using ada = await cluster.stander("ada", ELECTION);
    await leads(ada);
    const sessions = (): Promise<unknown> =>
      cluster.sql(
        `SELECT pid FROM pg_stat_activity WHERE starts_with(application_name, '${applicationPrefix(ada.identity.incarnation)}') ORDER BY pid`,
      );
    const before = await sessions();
    const lock = (await cluster.start("bob")).lock(ROLE);
    for (let tries = 0; tries < 10; tries++) assert.equal(await lock.acquire(candidate("bob"), TTL_MS), null);
    assert.deepEqual(await sessions(), before);
    assert.ok(ada.elector.held());
  });

  void test("fifty candidates on ten nodes race: one is elected, epochs are unique and grow, however terms end", async () => {
    await using cluster = await PostgresCluster.open(server);
    const time = new ManualClock();
    const members = await Promise.all(
      Array.from({ length: 10 }, (_, n) => cluster.start(`node-${n}`, { time })),
    );
    await raceOn(members, { rounds: 20, ttlMs: TTL_MS }, (round, term, lock) =>
      round % 3 === 0 ? time.advance(TTL_MS * 1.1) : lock.release(term),
    );
  });

  void test("two clusters in one database have leaders of their own, and do not hear of each other", async () => {
    await using one = await PostgresCluster.open(server);
    await using two = await PostgresCluster.open(server);
    const [a, b] = [(await one.start("ada")).lock(ROLE), (await two.start("ada")).lock(ROLE)];
    const over = new AbortController();
    const heard: string[] = [];
    void (async () => {
      for await (const _ of b.released(over.signal)) heard.push("hint");
    })();
    const [termA, termB] = [
      await granted(a, candidate("ada"), TTL_MS),
      await granted(b, candidate("bob"), TTL_MS),
    ];
    for (const cluster of [one, two]) {
      assert.deepEqual(await cluster.sql("SELECT locked FROM baton.leader"), [{ locked: true }]);
    }
    await eventually("its own lock", () => heard.length > 0);
    heard.length = 0;
    assert.equal(await a.renew(termA, TTL_MS), true);
    await a.release(termA);
    assert.deepEqual(await b.read(), termB);
    assert.equal(await b.renew(termB, TTL_MS), true);
    assert.deepEqual(heard, []);
    over.abort();
  });

  void test("a term ends with its session: the lock hints at it, and a renewal is refused without asking", async () => {
    await using cluster = await PostgresCluster.open(server);
    const identity = candidate("ada", systemRandom.uuid());
    const lock = (await cluster.start("ada", { identity })).lock(ROLE);
    const term = await granted(lock, identity, TTL_MS);
    // On the connection that listens: the notification of the grant, which is a hint too, has come before the answer.
    assert.deepEqual(await lock.read(), term);
    const over = new AbortController();
    const hint = lock.released(over.signal)[Symbol.asyncIterator]().next();
    await endLockSession(cluster);
    assert.equal((await hint).done, false);
    assert.equal(await lock.renew(term, TTL_MS), false);
    over.abort();
  });

  void test("holding the lock proves nothing against a valid term that does not stand on it", async () => {
    await using cluster = await PostgresCluster.open(server);
    const lock = (await cluster.start("bob")).lock(ROLE);
    await lock.release(await granted(lock, candidate("bob"), TTL_MS));
    await cluster.sql(
      `UPDATE baton.leader SET leader = 'ada', incarnation = 'ada/1', locked = false,
         lease_until = (extract(epoch FROM clock_timestamp()) * 1000)::bigint + 60000`,
    );
    for (let tries = 0; tries < 10; tries++) {
      assert.equal(await lock.acquire(candidate("bob"), TTL_MS), null);
      await systemClock.sleep(5);
    }
    assert.equal((await lock.read())?.leader, "ada");
    await cluster.sql("UPDATE baton.leader SET locked = true");
    await eventually("what a lock that is free proves", () => lock.acquire(candidate("bob"), TTL_MS));
  });

  void test("a lease that ran out is not revived by a renewal that comes late", async () => {
    await using cluster = await PostgresCluster.open(server);
    const time = new ManualClock();
    const lock = (await cluster.start("ada", { time })).lock(ROLE);
    const term = await granted(lock, candidate("ada"), TTL_MS);
    await time.advance(TTL_MS + 1);
    assert.equal(await lock.renew(term, TTL_MS), false);
    assert.equal(await lock.read(), null);
  });

  void test("epochs go on above everything that remembers one when rows are deleted", async () => {
    await using cluster = await PostgresCluster.open(server);
    const lock = (await cluster.start("ada")).lock(ROLE);
    const first = await granted(lock, candidate("ada"), TTL_MS);
    await cluster.sql("DELETE FROM baton.term");
    const second = await granted(lock, candidate("ada"), TTL_MS);
    assert.ok(second.epoch > first.epoch, "above the lease's");
    await cluster.sql("DELETE FROM baton.leader");
    const third = await granted(lock, candidate("bob"), TTL_MS);
    assert.ok(third.epoch > second.epoch, "above the term's");
    await cluster.sql(
      "DELETE FROM baton.leader; DELETE FROM baton.term; INSERT INTO baton.author (node, owner_epoch, leader_epoch) VALUES ('x', 0, 700)",
    );
    assert.equal((await granted(lock, candidate("ada"), TTL_MS)).epoch, 701, "above the authors'");
  });

  void test("whoever resigned stands in line again only when it asks again", async () => {
    await using cluster = await PostgresCluster.open(server);
    const ada = (await cluster.start("ada")).lock(ROLE);
    const bob = (await cluster.start("bob")).lock(ROLE);
    await ada.release(await granted(ada, candidate("ada"), TTL_MS));
    await granted(bob, candidate("bob"), TTL_MS);
    assert.equal(await inLine(cluster), 0);
    assert.equal(await ada.acquire(candidate("ada"), TTL_MS), null);
    await somebodyWaits(cluster);
  });

  void test("a standby that stops standing leaves the line, and nobody waits behind it", async () => {
    await using cluster = await PostgresCluster.open(server);
    await using ada = await cluster.stander("ada", ELECTION);
    await leads(ada);
    await using bob = await cluster.stander("bob", ELECTION);
    await somebodyWaits(cluster);
    await bob.elector.stop();
    await eventually("an empty line", async () => (await inLine(cluster)) === 0);
  });

  void test("a standby that is killed does not stay in line", async () => {
    await using cluster = await PostgresCluster.open(server);
    await using ada = await cluster.stander("ada", ELECTION);
    await leads(ada);
    await using holder = holderOf(cluster, "bob");
    await somebodyWaits(cluster);
    holder.signal("SIGKILL");
    await eventually("an empty line", async () => (await inLine(cluster)) === 0);
    assert.ok(ada.elector.held());
  });

  void test("where sessions may not be ended, the lease alone decides, and the term comes to stand on the lock later", async () => {
    await using cluster = await PostgresCluster.open(server);
    const { schema } = cluster;
    await cluster.sql(
      `CREATE ROLE plain_${schema} LOGIN; GRANT ALL ON SCHEMA ${schema} TO plain_${schema}; GRANT ALL ON ALL TABLES IN SCHEMA ${schema} TO plain_${schema}`,
    );
    const time = new ManualClock();
    const mighty = await cluster.start("ada", { time });
    await granted(mighty.lock(ROLE), candidate("ada"), TTL_MS);
    const url = cluster.url.replace("postgres@", `plain_${schema}@`);
    const options: MemberOptions = { time, url };
    const plain = await cluster.start("bob", options);
    const lock = plain.lock(ROLE);
    assert.equal(await lock.acquire(candidate("bob"), TTL_MS), null);
    await time.advance(TTL_MS * 1.1);
    const term = await granted(lock, candidate("bob"), TTL_MS);
    const stands = async (): Promise<unknown> =>
      (await cluster.sql("SELECT locked FROM baton.leader"))[0]!["locked"];
    assert.equal(await stands(), false);
    assert.match(plain.notes().join(), /pg_signal_backend/);
    assert.deepEqual(mighty.notes(), []);

    await mighty.stop();
    await eventually("the lock", async () => (await lock.renew(term, TTL_MS)) && (await stands()));
    await plain.stop();
    await cluster.sql(`DROP OWNED BY plain_${schema}; DROP ROLE plain_${schema}`);
  });
});
