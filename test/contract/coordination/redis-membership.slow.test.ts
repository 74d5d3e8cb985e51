/** The list of nodes in Redis: who is dead, who only looked like it, and whose name it is. */

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { RedisCoordination } from "../../../src/coordination/redis/redis.ts";
import { hasCode } from "../../../src/core/errors.ts";
import { SESSION_GONE_MS } from "../../../src/core/failure-detector.ts";
import type { NodeName } from "../../../src/core/ids.ts";
import type { NodeIdentity } from "../../../src/core/node.ts";
import type { Term } from "../../../src/core/term.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { systemRandom } from "../../../src/platform/random.ts";
import { lifecycleStress } from "../../support/lifecycle-stress.ts";
import { candidate, granted } from "../../support/lock-candidates.ts";
import { OWN_INFO } from "../../support/lock-postgres.ts";
import { RedisCluster, type RedisMemberOptions } from "../../support/lock-redis.ts";
import { ROLE } from "../../support/lock-world.ts";
import { RedisServer } from "../../support/redis-server.ts";
import { eventually, membershipContract } from "./membership.ts";

let server: RedisServer;
before(async () => {
  server = await RedisServer.start();
});
after(() => server.stop());

/** Quick, so that heartbeats matter within a test. The end of a life is noticed in 0.3 s whatever this says. */
const QUICK = { heartbeatMs: 50, deadAfterMs: 600, forgetAfterMs: 3_600_000 };
const CALM = { ...QUICK, deadAfterMs: 2_000 };

membershipContract("redis", async () => {
  const cluster = new RedisCluster(server);
  const identity = candidate("ada", systemRandom.uuid());
  const ada = await cluster.start("ada", { identity, settings: QUICK });
  return {
    membership: ada.membership,
    identity,
    info: OWN_INFO,
    fence: await granted(ada.lock(ROLE), identity, 60_000),
    join: async (name) => (await cluster.start(name, { settings: QUICK })).membership,
    close: () => cluster[Symbol.asyncDispose](),
  };
});

interface Leader {
  readonly coordination: RedisCoordination;
  readonly term: Term;
  /** Looks as often as a leader does, until somebody is found. */
  readonly firstDead: () => Promise<readonly NodeIdentity[]>;
  /** Looks for so long, and nobody is found. */
  readonly nobodyDead: (ms: number) => Promise<void>;
}

async function leader(cluster: RedisCluster, options: RedisMemberOptions = {}): Promise<Leader> {
  const identity = candidate("leader", systemRandom.uuid());
  const coordination = await cluster.start("leader", { settings: QUICK, ...options, identity });
  const term = await granted(coordination.lock(ROLE), identity, 60_000);
  const look = (): Promise<readonly NodeIdentity[]> => coordination.membership.findDead(term);
  return {
    coordination,
    term,
    firstDead: async () => {
      let dead: readonly NodeIdentity[] = [];
      await eventually("a dead node", async () => {
        dead = await look();
        if (dead.length === 0) await systemClock.sleep(50);
        return dead.length > 0;
      });
      return dead;
    },
    nobodyDead: async (ms) => {
      for (const until = systemClock.monotonic() + ms; systemClock.monotonic() < until;) {
        assert.deepEqual(await look(), []);
        await systemClock.sleep(50);
      }
    },
  };
}

/** A node that is not there any more: only its entry is. */
async function leaveEntry(
  cluster: RedisCluster,
  name: string,
  fields: { status?: string; tells?: boolean; heartbeatAgoMs?: number } = {},
): Promise<NodeIdentity> {
  const { status = "active", tells = true, heartbeatAgoMs = 0 } = fields;
  const identity = candidate(name, systemRandom.uuid());
  const [seconds] = await server.command<string[]>("TIME");
  const entry = {
    name,
    status,
    at: String(Number(seconds) * 1_000 - heartbeatAgoMs),
    beats: "1",
    life: tells ? `life-of-${identity.incarnation}` : "",
    recovered: "0",
    info: '{"hostname":"there","version":"9.9.9"}',
  };
  await server.command("SADD", cluster.key("nodes"), identity.incarnation);
  const row = cluster.key("nodes", identity.incarnation);
  await server.command("HSET", row, ...Object.entries(entry).flat());
  return identity;
}

const field = (cluster: RedisCluster, { incarnation }: NodeIdentity, name: string): Promise<string | null> =>
  server.command("HGET", cluster.key("nodes", incarnation), name);

/** On a server that has only just started a missing life proves nothing. Uptime is told in whole seconds. */
const settled = (forMs = QUICK.deadAfterMs): Promise<void> =>
  eventually("a server that has run for a while", async () => {
    const info = await server.command<string>("INFO", "server");
    return Number(/uptime_in_seconds:(\d+)/.exec(info)![1]) * 1_000 >= forMs;
  });

/** Everything that a node has at the server breaks, as with kill -9; its process goes on. */
async function endConnections({ incarnation }: NodeIdentity): Promise<void> {
  const list = await server.command<string>("CLIENT", "LIST");
  for (const line of list.split("\n").filter((each) => each.includes(`name=baton/${incarnation}/`))) {
    await server.command("CLIENT", "KILL", "ID", /^id=(\d+)/.exec(line)![1]!);
  }
}

const isStale = (error: unknown): boolean => hasCode(error, "STALE_EPOCH");

void describe("nodes on redis", () => {
  for (const status of ["joining", "active", "draining"]) {
    void test(`a node that is ${status} and whose connection is gone is found dead long before its heartbeat is old`, async (t) => {
      await using cluster = new RedisCluster(server);
      await settled(CALM.deadAfterMs);
      const ada = await leader(cluster, { settings: CALM });
      await ada.nobodyDead(100);
      const gone = await leaveEntry(cluster, "bob", { status });
      const startedAt = systemClock.monotonic();
      assert.deepEqual(await ada.firstDead(), [gone]);
      const tookMs = systemClock.monotonic() - startedAt;
      t.diagnostic(`found dead after ${tookMs.toFixed(0)} ms`);
      assert.ok(tookMs >= SESSION_GONE_MS && tookMs < CALM.deadAfterMs / 2, `took ${tookMs} ms`);
      assert.equal(await field(cluster, gone, "status"), "dead");
    });
  }

  void test("the dead are told until they are laid to rest, also to the next leader, and then forgotten in time", async () => {
    await using cluster = new RedisCluster(server);
    await settled();
    const ada = await leader(cluster);
    const gone = await leaveEntry(cluster, "bob");
    await ada.firstDead();
    const { membership } = ada.coordination;
    assert.deepEqual(await membership.findDead(ada.term), [gone]);

    const identity = candidate("next", systemRandom.uuid());
    const next = await cluster.start("next", { identity, settings: { ...QUICK, forgetAfterMs: 200 } });
    await ada.coordination.lock(ROLE).release(ada.term);
    const term = await granted(next.lock(ROLE), identity, 60_000);
    assert.deepEqual(await next.membership.findDead(term), [gone], "without watching again");
    await next.membership.laidToRest([gone], term);
    assert.deepEqual(await next.membership.findDead(term), []);
    await eventually("forgotten", async () => {
      await next.membership.findDead(term);
      return (await server.command("EXISTS", cluster.key("nodes", gone.incarnation))) === 0;
    });
  });

  void test("a node whose connection nobody can see is found dead by its heartbeat, after a whole watch of this very term", async () => {
    await using cluster = new RedisCluster(server);
    const ada = await leader(cluster);
    const gone = await leaveEntry(cluster, "bob", { tells: false, heartbeatAgoMs: 3_600_000 });
    const startedAt = systemClock.monotonic();
    assert.deepEqual(await ada.firstDead(), [gone]);
    assert.ok(systemClock.monotonic() - startedAt >= QUICK.deadAfterMs, "was not watched for long enough");

    await leaveEntry(cluster, "cyd", { tells: false, heartbeatAgoMs: 3_600_000 });
    await ada.coordination.membership.laidToRest([gone], ada.term);
    await ada.nobodyDead(QUICK.deadAfterMs / 2);
    const again = await granted(
      ada.coordination.lock(ROLE),
      candidate("leader", ada.term.incarnation),
      60_000,
    );
    const { membership } = ada.coordination;
    for (let ms = 0; ms < QUICK.deadAfterMs - 200; ms += 100) {
      assert.deepEqual(await membership.findDead(again), [], "counted what an earlier term saw");
      await systemClock.sleep(100);
    }
  });

  void test("statuses that this version does not know are kept, and their nodes never taken for dead", async () => {
    await using cluster = new RedisCluster(server);
    const ada = await leader(cluster);
    const odd = await leaveEntry(cluster, "bob", { status: "hibernating", heartbeatAgoMs: 3_600_000 });
    await ada.nobodyDead(QUICK.deadAfterMs + 200);
    assert.equal(await field(cluster, odd, "status"), "hibernating");
    await eventually("it is seen", () =>
      ada.coordination.membership.nodes().some(({ status }) => status === "hibernating"),
    );
  });

  void test("an old leader marks nobody: STALE_EPOCH", async () => {
    await using cluster = new RedisCluster(server);
    const ada = await leader(cluster);
    const gone = await leaveEntry(cluster, "bob");
    await granted(ada.coordination.lock(ROLE), candidate("leader", ada.term.incarnation), 60_000);
    const { membership } = ada.coordination;
    await assert.rejects(membership.findDead(ada.term), isStale);
    await assert.rejects(membership.laidToRest([gone], ada.term), isStale);
    const sign = { incarnation: gone.incarnation, status: "active", heartbeat: 1, locked: true, held: false };
    await assert.rejects(membership.registry.markDead([sign], ada.term), isStale);
    assert.equal(await field(cluster, gone, "status"), "active");
  });

  void test("a node whose heartbeat came in the meantime is not marked", async () => {
    await using cluster = new RedisCluster(server);
    const ada = await leader(cluster);
    const bob = await leaveEntry(cluster, "bob");
    const sign = { incarnation: bob.incarnation, status: "active", heartbeat: 7, locked: true, held: false };
    assert.deepEqual(await ada.coordination.membership.registry.markDead([sign], ada.term), new Set());
    assert.equal(await field(cluster, bob, "status"), "active");
  });

  void test("a node that was marked dead by mistake comes back by itself, and is not laid to rest", async () => {
    await using cluster = new RedisCluster(server);
    const ada = await leader(cluster);
    const identity = candidate("bob", systemRandom.uuid());
    const bob = await cluster.start("bob", { identity, settings: QUICK });
    await bob.membership.setStatus("draining");
    await server.command("HSET", cluster.key("nodes", identity.incarnation), "status", "dead");
    await eventually("bob is back", async () => (await field(cluster, identity, "status")) === "draining");
    await ada.coordination.membership.laidToRest([identity], ada.term);
    assert.equal(await field(cluster, identity, "recovered"), "0");
    assert.deepEqual(await ada.coordination.membership.findDead(ada.term), []);
  });

  void test("one that was taken for dead and whose name is somebody else's now is told so, and stays out", async () => {
    await using cluster = new RedisCluster(server);
    const warned: string[] = [];
    const note = (_: object, message: string): void => void warned.push(message);
    const log = { debug: note, info: note, warn: note, error: note };
    const first = candidate("bob", systemRandom.uuid());
    await cluster.start("bob", { identity: first, settings: QUICK, log });
    await server.command("DEL", cluster.key("nodes", first.incarnation));
    await leaveEntry(cluster, "bob", { tells: false });
    await eventually("a warning", () => warned.some((message) => /bob.*restart it under/.test(message)));
    assert.equal(await server.command("EXISTS", cluster.key("nodes", first.incarnation)), 0);
  });

  void test("a node whose connection broke is back before anybody takes it for dead", async () => {
    await using cluster = new RedisCluster(server);
    await settled();
    const ada = await leader(cluster);
    const identity = candidate("bob", systemRandom.uuid());
    await cluster.start("bob", { identity, settings: QUICK });
    await ada.nobodyDead(100);
    for (let round = 0; round < 3; round++) {
      await endConnections(identity);
      await ada.nobodyDead(400);
    }
  });

  void test("a list that Redis has lost is there again with the next heartbeats, and nobody died", async () => {
    await using cluster = new RedisCluster(server);
    const ada = await leader(cluster);
    const bob = await cluster.start("bob", { settings: QUICK });
    await bob.membership.setStatus("active");
    await server.command("DEL", cluster.key("nodes"));
    await eventually("everybody is back", async () => {
      await ada.coordination.membership.findDead(ada.term);
      return (await server.command("SCARD", cluster.key("nodes"))) === 2;
    });
    await ada.nobodyDead(200);
    await eventually("bob is active", () =>
      ada.coordination.membership.nodes().some(({ name, status }) => name === "bob" && status === "active"),
    );
  });

  void test("a second node of a name is refused while the first lives, with what to do about it", async () => {
    await using cluster = new RedisCluster(server);
    await cluster.start("bob", {
      settings: QUICK,
      info: () => ({ ...OWN_INFO, startedAt: 1_767_225_600_000 }),
    });
    const warned: string[] = [];
    const note = (_: object, message: string): void => void warned.push(message);
    const log = { debug: note, info: note, warn: note, error: note };
    const startedAt = systemClock.monotonic();
    await assert.rejects(cluster.start("bob", { settings: QUICK, log }), (error: unknown) => {
      assert.ok(hasCode(error, "NAME_IN_USE"));
      assert.equal(error.status, 409);
      assert.match(error.message, /bob.*host host.*version 1\.2\.3.*2026-01-01T00:00:00.*--name/);
      return true;
    });
    assert.ok(systemClock.monotonic() - startedAt >= 2 * QUICK.deadAfterMs, "gave up early");
    assert.equal(warned.filter((message) => /bob.*waiting/.test(message)).length, 1);
    assert.equal(await server.command("SCARD", cluster.key("nodes")), 1);
  });

  void test("a node that was taken for dead and whose name another has taken says so, until the name is free again", async () => {
    await using cluster = new RedisCluster(server);
    const identity = candidate("bob", systemRandom.uuid());
    const bob = await cluster.start("bob", { identity, settings: QUICK });
    assert.equal(bob.membership.displaced(), null);
    await server.command("HSET", cluster.key("nodes", identity.incarnation), "status", "dead");
    const other = await leaveEntry(cluster, "bob");
    await eventually("it to know", async () => bob.membership.displaced() !== null);
    assert.match(bob.membership.displaced()!, /another has taken the name bob/);
    await server.command("SREM", cluster.key("nodes"), other.incarnation);
    await server.command("DEL", cluster.key("nodes", other.incarnation));
    await eventually("it to be back", async () => bob.membership.displaced() === null);
  });

  void test("a predecessor whose connection is gone does not hold up a restart, however young its heartbeat", async () => {
    await using cluster = new RedisCluster(server);
    await settled(CALM.deadAfterMs);
    const gone = await leaveEntry(cluster, "bob");
    const startedAt = systemClock.monotonic();
    const bob = await cluster.start("bob", { settings: CALM });
    assert.ok(systemClock.monotonic() - startedAt < CALM.deadAfterMs / 2, "waited for its heartbeat");
    assert.equal(await field(cluster, gone, "status"), "dead");
    assert.deepEqual(
      bob.membership.nodes().map(({ name, status, alive }) => ({ name, status, alive })),
      [
        { name: "bob", status: "joining", alive: true },
        { name: "bob", status: "dead", alive: false },
      ],
    );
  });

  void test("a predecessor whose connection nobody can see is waited for until its heartbeat is old", async () => {
    await using cluster = new RedisCluster(server);
    const gone = await leaveEntry(cluster, "bob", { tells: false, heartbeatAgoMs: -500 });
    const startedAt = systemClock.monotonic();
    await cluster.start("bob", { settings: QUICK });
    assert.ok(systemClock.monotonic() - startedAt >= 100);
    assert.equal(await field(cluster, gone, "status"), "dead");
  });

  void test("a node that stops is not in the list any more", async () => {
    await using cluster = new RedisCluster(server);
    const ada = await leader(cluster);
    const bob = await cluster.start("bob", { settings: QUICK });
    await eventually("bob is seen", () => ada.coordination.membership.nodes().length === 2);
    await bob.stop();
    await eventually("bob is gone", () => ada.coordination.membership.nodes().length === 1);
    assert.equal(await server.command("SCARD", cluster.key("nodes")), 1);
  });

  void test("a node that says nothing looks less and less alive, and cannot be asked for anything", async () => {
    await using cluster = new RedisCluster(server);
    const ada = await cluster.start("ada", { settings: CALM });
    await leaveEntry(cluster, "bob", { heartbeatAgoMs: 500 });
    const alive = (): boolean | undefined => ada.membership.nodes().find(({ name }) => name === "bob")?.alive;
    await eventually("bob looks alive", () => alive() === true);
    await eventually("bob does not", () => alive() === false);
    assert.equal(await ada.membership.ask("bob" as NodeName, "drain"), false);
  });

  void test("a wish is heard within moments, though heartbeats are far apart, and by polling where nothing is told", async () => {
    await using cluster = new RedisCluster(server);
    const bob = await cluster.start("bob", {
      settings: { ...QUICK, heartbeatMs: 60_000, deadAfterMs: 600_000 },
    });
    const over = new AbortController();
    const wishes = bob.membership.wishes(over.signal)[Symbol.asyncIterator]();
    assert.equal(await bob.membership.ask("bob" as NodeName, "drain"), true);
    assert.deepEqual(await wishes.next(), { done: false, value: "drain" });

    const identity = candidate("cyd", systemRandom.uuid());
    const cyd = await cluster.start("cyd", { identity, settings: QUICK });
    await server.command("HSET", cluster.key("nodes", identity.incarnation), "wish", "resume");
    assert.deepEqual(await cyd.membership.wishes(over.signal)[Symbol.asyncIterator]().next(), {
      done: false,
      value: "resume",
    });
    await eventually("it is cleared", async () => (await field(cluster, identity, "wish")) === null);
    over.abort();
  });

  void test("what an older version did not say of itself, and what nobody can read, is shown as nothing", async () => {
    await using cluster = new RedisCluster(server);
    const bob = await leaveEntry(cluster, "bob");
    const cyd = await leaveEntry(cluster, "cyd");
    await server.command("HSET", cluster.key("nodes", cyd.incarnation), "info", "][");
    const ada = await cluster.start("ada", { settings: QUICK });
    const [, shown, odd] = ada.membership.nodes();
    assert.deepEqual([shown?.incarnation, shown?.hostname, shown?.load.cpu], [bob.incarnation, "there", 0]);
    assert.deepEqual([odd?.hostname, odd?.roles, odd?.url], ["unknown", [], null]);
  });

  lifecycleStress("redis coordination", async () => {
    const cluster = new RedisCluster(server);
    const identity = candidate("ada", systemRandom.uuid());
    return {
      service: cluster.member("ada", { identity, settings: QUICK }),
      works: async (coordination) => {
        const lock = coordination.lock(ROLE);
        await lock.release(await granted(lock, identity, 60_000));
        assert.equal(coordination.membership.nodes().length, 1);
      },
      close: () => cluster[Symbol.asyncDispose](),
    };
  });
});

for (const persistent of [true, false]) {
  void test(`a restart of Redis ${persistent ? "with" : "without"} its data makes nobody dead, and everybody goes on`, async () => {
    const own = await RedisServer.start({ persistent });
    try {
      await using cluster = new RedisCluster(own);
      const settings = { heartbeatMs: 50, deadAfterMs: 1_500, forgetAfterMs: 3_600_000 };
      const ada = await leader(cluster, { settings });
      const bob = await cluster.start("bob", { settings });
      await eventually("bob is seen", () => ada.coordination.membership.nodes().length === 2);
      const lock = ada.coordination.lock(ROLE);
      await own.halt("kill");
      await own.relaunch();
      const who = candidate("leader", ada.term.incarnation);
      const term = persistent ? ada.term : await eventualTerm(() => lock.acquire(who, 60_000));
      if (!persistent) assert.ok(term.epoch > ada.term.epoch);
      let looks = 0;
      for (const until = systemClock.monotonic() + 2_500; systemClock.monotonic() < until;) {
        try {
          assert.deepEqual(await ada.coordination.membership.findDead(term), []);
          looks += 1;
        } catch (error) {
          assert.ok(hasCode(error, "STORE_UNAVAILABLE"), String(error));
        }
        await systemClock.sleep(50);
      }
      assert.ok(looks > 10, `only ${looks} looks`);
      await bob.membership.setStatus("active");
      await eventually("bob is heard", () =>
        ada.coordination.membership.nodes().some(({ name, status }) => name === "bob" && status === "active"),
      );
    } finally {
      await own.stop();
    }
  });
}

async function eventualTerm(ask: () => Promise<Term | null>): Promise<Term> {
  let term: Term | null = null;
  await eventually("a term", async () => (term = await ask().catch(() => null)) !== null);
  return term!;
}
