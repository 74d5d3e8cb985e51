/** A Redis that forgets, stands still, is replaced or does not answer: who leads, and under which epoch the store takes writes. */

import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import type { ElectorSettings } from "../../../../src/leadership/elector.ts";
import { systemClock } from "../../../../src/platform/clock.ts";
import { systemRandom } from "../../../../src/platform/random.ts";
import { candidate, granted } from "../../../support/lock-candidates.ts";
import { leads, standsBy } from "../../../support/lock-admitted-election.ts";
import { openRedisElection, RedisCluster } from "../../../support/lock-redis.ts";
import { ROLE } from "../../../support/lock-world.ts";
import { PostgresServer } from "../../../support/postgres-server.ts";
import { RedisServer } from "../../../support/redis-server.ts";
import { TcpProxy } from "../../../support/tcp-proxy.ts";
import {
  admittedFaults,
  ELECTION,
  QUICK,
  survives,
  withServer,
} from "../../../contract/coordination/admitted-faults.ts";
import { eventually } from "../../../support/wait.ts";

const [redis, postgres] = await Promise.all([RedisServer.start(), PostgresServer.start()]);
after(() => Promise.all([redis.stop(), postgres.stop()]));

admittedFaults("a Redis", {
  server: () => redis,
  start: () => RedisServer.start({ persistent: true }),
  cluster: (server) => new RedisCluster(server),
  election: (server) => openRedisElection(server, postgres),
});

void describe("a Redis that forgets", () => {
  void test("FLUSHALL while led: the holder steps down, and the next epoch is higher", () =>
    survives(
      openRedisElection(redis, postgres),
      ELECTION,
      async () => void (await redis.command("FLUSHALL")),
    ));

  void test("a key that an operator deleted: the same", () =>
    survives(openRedisElection(redis, postgres), ELECTION, async ({ cluster }) => {
      await redis.command("DEL", cluster.key("leader"), cluster.key("leader:epoch"));
    }));

  void test("a restart without persistence: the same", () =>
    withServer(
      () => RedisServer.start(),
      (server) =>
        survives(openRedisElection(server, postgres), ELECTION, async () => {
          await server.halt("kill");
          await server.relaunch();
        }),
    ));

  void test("a key that was thrown away because memory is full: the same, and people are warned", () =>
    withServer(
      () =>
        RedisServer.start({
          settings: [
            ["maxmemory", "4mb"],
            ["maxmemory-policy", "volatile-ttl"],
          ],
        }),
      (server) =>
        survives(openRedisElection(server, postgres), ELECTION, async ({ cluster }) => {
          const member = await cluster.start("cyd");
          assert.match(member.notes().join(), /maxmemory-policy volatile-ttl.*noeviction/);
          for (let i = 0; (await server.command("EXISTS", cluster.key("leader"))) === 1; i++) {
            assert.ok(i < 200, "the key was not thrown away");
            await server.command("SET", `ballast-${i}`, "x".repeat(100_000)).catch(() => {});
          }
          for (let i = 0; i < 200; i++) await server.command("DEL", `ballast-${i}`);
        }),
    ));

  void test("scripts that were flushed are sent in full: the term goes on", async () => {
    await using election = await openRedisElection(redis, postgres);
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
  void test("a renewal that reaches Redis after its deadline extends nothing, though the lease is still valid", async () => {
    await using cluster = new RedisCluster(redis);
    const identity = candidate("ada", systemRandom.uuid());
    const lock = (await cluster.start("ada", { identity, settings: QUICK })).lock(ROLE);
    const term = await granted(lock, identity, 60_000);
    assert.equal(await lock.renew(term, 60_000), true, "the server has the script by now");
    const before = await lock.tenure();
    redis.pause();
    const startedAt = systemClock.monotonic();
    await assert.rejects(lock.renew(term, 60_000), { code: "STORE_UNAVAILABLE" });
    assert.ok(systemClock.monotonic() - startedAt < 2_000, "waited longer than its deadline");
    await systemClock.sleep(200);
    redis.resume();
    await systemClock.sleep(100); // for what lay there from before
    const after = await eventually("Redis is back", () => lock.tenure().catch(() => null));
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
      await assert.rejects(lock.renew(term, 3_000), { code: "STORE_UNAVAILABLE" });
      assert.ok(systemClock.monotonic() - startedAt < 2_000);
      await proxy.forward();
      await eventually("a renewal", () => lock.renew(term, 3_000).catch(() => false));
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
    await assert.rejects(asked, { code: "STORE_UNAVAILABLE" });
    await systemClock.sleep(200);
    redis.resume();
    const term = await eventually("bob's term", () =>
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
      await using election = await openRedisElection(redis, postgres);
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
      await eventually("ada steps down", () => ada.elector.held() === null);
      assert.ok(systemClock.monotonic() - startedAt < long.leaseMs);
    } finally {
      await proxy.stop();
    }
  });
});
