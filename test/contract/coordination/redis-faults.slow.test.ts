/** A Redis that forgets, stands still, is replaced or does not answer: who leads, and under which epoch the store takes writes. */

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { ElectorSettings } from "../../../src/coordination/elector-settings.ts";
import { hasCode } from "../../../src/core/errors.ts";
import type { Term } from "../../../src/core/term.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { systemRandom } from "../../../src/platform/random.ts";
import { candidate, granted } from "../../support/lock-candidates.ts";
import { leads, RedisElection, standsBy, until, type Stander } from "../../support/lock-redis-election.ts";
import { RedisCluster } from "../../support/lock-redis.ts";
import { ROLE } from "../../support/lock-world.ts";
import { PostgresServer } from "../../support/postgres-server.ts";
import { RedisServer } from "../../support/redis-server.ts";
import { TcpProxy } from "../../support/tcp-proxy.ts";

let redis: RedisServer;
let postgres: PostgresServer;
before(async () => {
  [redis, postgres] = await Promise.all([RedisServer.start(), PostgresServer.start()]);
});
after(() => Promise.all([redis.stop(), postgres.stop()]));

const ELECTION: ElectorSettings = { leaseMs: 1_500, renewMs: 300, marginMs: 300, retryMs: 150 };
/** Commands are given up after a second, the shortest there is. */
const QUICK = { heartbeatMs: 50, deadAfterMs: 2_000, forgetAfterMs: 3_600_000 };

async function withServer(
  options: Parameters<typeof RedisServer.start>[0],
  proof: (server: RedisServer) => Promise<void>,
): Promise<void> {
  const own = await RedisServer.start(options);
  try {
    await proof(own);
  } finally {
    await own.stop();
  }
}

/** Two nodes, one of which leads, and a fault; afterwards somebody leads under a higher epoch, and the old term may not write. */
async function survives(
  server: RedisServer,
  fault: (election: RedisElection) => Promise<void>,
): Promise<void> {
  await using election = await RedisElection.open(server, postgres);
  await using ada = await election.stander("ada", ELECTION);
  const old = await leads(ada);
  await using bob = await election.stander("bob", ELECTION);
  await standsBy(bob);
  assert.equal(await election.takes(old), true);

  const startedAt = systemClock.monotonic();
  await fault(election);
  await until("the end of the old term", () => !heldTerm(ada, old));
  assert.ok(systemClock.monotonic() - startedAt < 2_000, "the holder noticed too late");
  const next = await until("the next term", () => newest([ada, bob]));
  assert.ok(next.epoch > old.epoch, `epoch ${next.epoch} after ${old.epoch}`);
  assert.equal(await election.takes(old), false, "a stale write was taken");
  assert.equal(await election.takes(next), true);
}

const heldTerm = ({ elector }: Stander, term: Term): boolean => elector.held()?.epoch === term.epoch;
const newest = (standers: readonly Stander[]): Term | undefined =>
  standers.flatMap(({ elector }) => elector.held() ?? []).toSorted((a, b) => b.epoch - a.epoch)[0];

void describe("a Redis that forgets", () => {
  void test("FLUSHALL while led: the holder steps down, and the next epoch is higher", () =>
    survives(redis, async () => void (await redis.command("FLUSHALL"))));

  void test("a key that an operator deleted: the same", () =>
    survives(redis, async ({ cluster }) => {
      await redis.command("DEL", cluster.key("leader"), cluster.key("leader:epoch"));
    }));

  void test("a restart without persistence: the same", () =>
    withServer({}, (server) =>
      survives(server, async () => {
        await server.halt("kill");
        await server.relaunch();
      }),
    ));

  void test("a key that was thrown away because memory is full: the same, and people are warned", () =>
    withServer(
      {
        settings: [
          ["maxmemory", "4mb"],
          ["maxmemory-policy", "volatile-ttl"],
        ],
      },
      (server) =>
        survives(server, async ({ cluster }) => {
          const member = await cluster.start("cyd");
          assert.match(member.notes().join(), /maxmemory-policy volatile-ttl.*noeviction/);
          for (let i = 0; (await server.command("EXISTS", cluster.key("leader"))) === 1; i++) {
            assert.ok(i < 200, "the key was not thrown away");
            await server.command("SET", `ballast-${i}`, "x".repeat(100_000)).catch(() => {});
          }
          for (let i = 0; i < 200; i++) await server.command("DEL", `ballast-${i}`);
        }),
    ));

  void test("a restart with persistence keeps the term", () =>
    withServer({ persistent: true }, async (server) => {
      await using election = await RedisElection.open(server, postgres);
      await using ada = await election.stander("ada", { ...ELECTION, leaseMs: 8_000 });
      const term = await leads(ada);
      const lock = ada.coordination.lock(ROLE);
      const { leaseUntil } = (await lock.tenure())!;
      await server.halt("kill");
      await server.relaunch();
      const renewed = await until("a renewal", async () => {
        const tenure = await lock.tenure().catch(() => null);
        return tenure && tenure.leaseUntil > leaseUntil && tenure;
      });
      assert.equal(renewed.epoch, term.epoch);
      assert.equal(ada.elector.held()?.epoch, term.epoch);
    }));

  void test("a failover to a server that lacks the key: two may believe, one may write, and the other is told soon", () =>
    withServer({}, async (replica) => {
      await using election = await RedisElection.open(redis, postgres);
      await using ada = await election.stander("ada", ELECTION);
      const old = await leads(ada);
      await using bob = await election.stander("bob", ELECTION, { url: replica.url() });
      const startedAt = systemClock.monotonic();
      const next = await leads(bob);
      assert.ok(next.epoch > old.epoch);
      assert.equal(await election.takes(old), false);
      assert.equal(await election.takes(next), true);
      await until("ada is told", () => !heldTerm(ada, old));
      assert.ok(systemClock.monotonic() - startedAt < ELECTION.leaseMs, "only its own lease told it");
      assert.equal(bob.elector.held()?.epoch, next.epoch);
    }));

  void test("scripts that were flushed are sent in full: the term goes on", async () => {
    await using election = await RedisElection.open(redis, postgres);
    await using ada = await election.stander("ada", ELECTION);
    const term = await leads(ada);
    for (let round = 0; round < 5; round++) {
      await redis.command("SCRIPT", "FLUSH");
      await systemClock.sleep(ELECTION.renewMs);
    }
    await systemClock.sleep(ELECTION.leaseMs);
    assert.equal(ada.elector.held()?.epoch, term.epoch);
  });
});

void describe("a Redis that does not answer", () => {
  void test("stopped for two leases: the leader steps down by itself, what it had sent revives nothing, and the next epoch is higher", () =>
    withServer({}, async (server) => {
      await using election = await RedisElection.open(server, postgres);
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

  void test("a renewal that reaches Redis after its deadline extends nothing, though the lease is still valid", async () => {
    await using cluster = new RedisCluster(redis);
    const identity = candidate("ada", systemRandom.uuid());
    const lock = (await cluster.start("ada", { identity, settings: QUICK })).lock(ROLE);
    const term = await granted(lock, identity, 60_000);
    assert.equal(await lock.renew(term, 60_000), true, "the server has the script by now");
    const before = await lock.tenure();
    redis.pause();
    const startedAt = systemClock.monotonic();
    await assert.rejects(lock.renew(term, 60_000), (error) => hasCode(error, "STORE_UNAVAILABLE"));
    assert.ok(systemClock.monotonic() - startedAt < 2_000, "waited longer than its deadline");
    await systemClock.sleep(200);
    redis.resume();
    await systemClock.sleep(100); // for what lay there from before
    const after = await until("Redis is back", () => lock.tenure().catch(() => null));
    assert.deepEqual(after, before);
    assert.equal(await lock.renew(term, 60_000), true, "the term itself goes on");
  });

  void test("an answer that never comes ends with a deadline, what comes later is ignored, and a new connection goes on", async () => {
    const proxy = await TcpProxy.start(redis.url());
    try {
      await using cluster = new RedisCluster(redis);
      const identity = candidate("ada", systemRandom.uuid());
      const url = proxy.through(redis.url());
      const lock = (await cluster.start("ada", { identity, settings: QUICK, url })).lock(ROLE);
      const term = await granted(lock, identity, 3_000);
      await proxy.freeze("down");
      const startedAt = systemClock.monotonic();
      await assert.rejects(lock.renew(term, 3_000), (error) => hasCode(error, "STORE_UNAVAILABLE"));
      assert.ok(systemClock.monotonic() - startedAt < 2_000);
      await proxy.forward();
      await until("a renewal", () => lock.renew(term, 3_000).catch(() => false));
    } finally {
      await proxy.stop();
    }
  });

  void test("a grant that reaches Redis after its deadline takes no lock", async () => {
    await using cluster = new RedisCluster(redis);
    const ada = await cluster.start("ada", { settings: QUICK });
    const bob = await cluster.start("bob", { settings: QUICK });
    // It knows the time of Redis by now, and Redis the script.
    await ada.lock(ROLE).release(await granted(ada.lock(ROLE), candidate("ada"), 60_000));
    redis.pause();
    const asked = ada.lock(ROLE).acquire(candidate("ada"), 60_000);
    await assert.rejects(asked, (error) => hasCode(error, "STORE_UNAVAILABLE"));
    await systemClock.sleep(200);
    redis.resume();
    const term = await until("bob's term", () =>
      bob
        .lock(ROLE)
        .acquire(candidate("bob"), 60_000)
        .catch(() => null),
    );
    assert.equal(term.leader, "bob");
  });

  void test("a leader cut off from Redis is superseded at once; its writes are refused, and it steps down by itself", async () => {
    const proxy = await TcpProxy.start(redis.url());
    try {
      await using election = await RedisElection.open(redis, postgres);
      const long: ElectorSettings = { leaseMs: 6_000, renewMs: 2_000, marginMs: 1_500, retryMs: 2_000 };
      await using ada = await election.stander("ada", long, { url: proxy.through(redis.url()) });
      const old = await leads(ada);
      await using bob = await election.stander("bob", long);
      await standsBy(bob);
      await systemClock.sleep(100);
      const startedAt = systemClock.monotonic();
      await proxy.refuse();
      const next = await leads(bob);
      assert.ok(systemClock.monotonic() - startedAt < long.leaseMs / 2, "waited for the lease");
      assert.equal(await election.takes(old), false);
      assert.equal(await election.takes(next), true);
      await until("ada steps down", () => ada.elector.held() === null);
      assert.ok(systemClock.monotonic() - startedAt < long.leaseMs);
    } finally {
      await proxy.stop();
    }
  });

  void test("a pause below the deadline of a renewal costs nothing", async () => {
    await using cluster = new RedisCluster(redis);
    const identity = candidate("ada", systemRandom.uuid());
    const lock = (await cluster.start("ada", { identity, settings: QUICK })).lock(ROLE);
    const term = await granted(lock, identity, 60_000);
    redis.pause();
    const renewing = lock.renew(term, 60_000);
    await systemClock.sleep(300);
    redis.resume();
    assert.equal(await renewing, true);
    assert.equal(await lock.renew(term, 60_000), true);
  });
});
