/** The list of nodes on PostgreSQL: who is dead, who only looked like it, and whose name it is. */

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { PostgresCoordination } from "../../../src/coordination/postgres/postgres.ts";
import { hasCode } from "../../../src/core/errors.ts";
import { SESSION_GONE_MS } from "../../../src/core/failure-detector.ts";
import type { NodeName } from "../../../src/core/ids.ts";
import type { NodeIdentity } from "../../../src/core/node.ts";
import type { Term } from "../../../src/core/term.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { applicationPrefix } from "../../../src/platform/drivers/postgres-name.ts";
import { systemRandom } from "../../../src/platform/random.ts";
import { lifecycleStress } from "../../support/lifecycle-stress.ts";
import { candidate, granted } from "../../support/lock-candidates.ts";
import { OWN_INFO, PostgresCluster, type MemberOptions } from "../../support/lock-postgres.ts";
import { ROLE } from "../../support/lock-world.ts";
import { PostgresServer } from "../../support/postgres-server.ts";
import { eventually, membershipContract } from "./membership.ts";

let server: PostgresServer;
before(async () => {
  server = await PostgresServer.start();
});
after(() => server.stop());

/** Quick, so that heartbeats matter within a test. Sessions are noticed in 0.3 s whatever this says. */
const QUICK = { heartbeatMs: 50, deadAfterMs: 600, forgetAfterMs: 3_600_000 };

const CALM = { ...QUICK, deadAfterMs: 2_000 };

membershipContract("postgres", async () => {
  const cluster = await PostgresCluster.open(server);
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
  readonly coordination: PostgresCoordination;
  readonly term: Term;
  /** Looks as often as a leader does, until somebody is found. */
  readonly firstDead: () => Promise<readonly NodeIdentity[]>;
  /** Looks for so long, and nobody is found. */
  readonly nobodyDead: (ms: number) => Promise<void>;
}

async function leader(cluster: PostgresCluster, options: MemberOptions = {}): Promise<Leader> {
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

/** A node that is not there any more: only its row is. */
async function leaveRow(
  cluster: PostgresCluster,
  name: string,
  fields: { status?: string; locked?: boolean; heartbeatAgoMs?: number; host?: string } = {},
): Promise<NodeIdentity> {
  const { status = "active", locked = true, heartbeatAgoMs = 0, host = "there" } = fields;
  const identity = candidate(name, systemRandom.uuid());
  await cluster.sql(
    `INSERT INTO baton.node (incarnation, name, hostname, roles, capabilities, version, status, started_at,
       last_heartbeat, load, info, locked)
     VALUES ('${identity.incarnation}', '${name}', '${host}', '{}', '{}', '9.9.9', '${status}', 1000000,
       (extract(epoch FROM clock_timestamp()) * 1000)::bigint - ${heartbeatAgoMs}, '{}', '{}', ${locked})`,
  );
  return identity;
}

const statusOf = async (cluster: PostgresCluster, { incarnation }: NodeIdentity): Promise<unknown> =>
  (await cluster.sql(`SELECT status FROM baton.node WHERE incarnation = '${incarnation}'`))[0]?.["status"];

/** On a server that has only just started a missing session proves nothing. */
const settled = (cluster: PostgresCluster, forMs = QUICK.deadAfterMs): Promise<void> =>
  eventually("a server that has run for a while", async () => {
    const text = "SELECT extract(epoch FROM clock_timestamp() - pg_postmaster_start_time()) * 1000 AS up";
    return Number((await cluster.sql(text))[0]!["up"]) > forMs;
  });

/** Everything that a node has at the server breaks, as with kill -9; its process goes on. */
const endSessions = (cluster: PostgresCluster, { incarnation }: NodeIdentity): Promise<unknown> =>
  cluster.sql(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE starts_with(application_name, '${applicationPrefix(incarnation)}')`,
  );

void describe("nodes on postgres", () => {
  for (const status of ["joining", "active", "draining"]) {
    void test(`a node that is ${status} and whose session is gone is found dead long before its heartbeat is old`, async (t) => {
      await using cluster = await PostgresCluster.open(server);
      await settled(cluster, CALM.deadAfterMs);
      const ada = await leader(cluster, { settings: CALM });
      await ada.nobodyDead(100);
      const gone = await leaveRow(cluster, "bob", { status });
      const startedAt = systemClock.monotonic();
      assert.deepEqual(await ada.firstDead(), [gone]);
      const tookMs = systemClock.monotonic() - startedAt;
      t.diagnostic(`found dead after ${tookMs.toFixed(0)} ms`);
      assert.ok(tookMs >= SESSION_GONE_MS && tookMs < CALM.deadAfterMs / 2, `took ${tookMs} ms`);
      assert.equal(await statusOf(cluster, gone), "dead");
    });
  }

  void test("the dead are told until they are laid to rest, also to the next leader, and then forgotten in time", async () => {
    await using cluster = await PostgresCluster.open(server);
    const ada = await leader(cluster);
    const gone = await leaveRow(cluster, "bob");
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
      return (await statusOf(cluster, gone)) === undefined;
    });
  });

  void test("a node without a session lock is found dead by its heartbeat, after a whole watch of this very term", async () => {
    await using cluster = await PostgresCluster.open(server);
    const ada = await leader(cluster);
    const gone = await leaveRow(cluster, "bob", { locked: false, heartbeatAgoMs: 3_600_000 });
    const startedAt = systemClock.monotonic();
    assert.deepEqual(await ada.firstDead(), [gone]);
    assert.ok(systemClock.monotonic() - startedAt >= QUICK.deadAfterMs, "was not watched for long enough");

    await leaveRow(cluster, "cyd", { locked: false, heartbeatAgoMs: 3_600_000 });
    await ada.coordination.membership.laidToRest([gone], ada.term);
    await ada.nobodyDead(QUICK.deadAfterMs / 2);
    await ada.coordination.lock(ROLE).release(ada.term);
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
    await using cluster = await PostgresCluster.open(server);
    const ada = await leader(cluster);
    const odd = await leaveRow(cluster, "bob", {
      status: "hibernating",
      locked: true,
      heartbeatAgoMs: 3_600_000,
    });
    await ada.nobodyDead(QUICK.deadAfterMs + 200);
    assert.equal(await statusOf(cluster, odd), "hibernating");
    await eventually("it is seen", () =>
      ada.coordination.membership.nodes().some(({ status }) => status === "hibernating"),
    );
  });

  void test("an old leader marks nobody: STALE_EPOCH", async () => {
    await using cluster = await PostgresCluster.open(server);
    const ada = await leader(cluster);
    const gone = await leaveRow(cluster, "bob");
    await granted(ada.coordination.lock(ROLE), candidate("leader", ada.term.incarnation), 60_000);
    const stale = (error: unknown): boolean => hasCode(error, "STALE_EPOCH");
    const { membership } = ada.coordination;
    await assert.rejects(membership.findDead(ada.term), stale);
    await assert.rejects(membership.laidToRest([gone], ada.term), stale);
    const sign = { incarnation: gone.incarnation, status: "active", heartbeat: 0, locked: true, held: false };
    await assert.rejects(membership.registry.markDead([sign], ada.term), stale);
    assert.equal(await statusOf(cluster, gone), "active");
  });

  void test("a node whose heartbeat came in the meantime is not marked", async () => {
    await using cluster = await PostgresCluster.open(server);
    const ada = await leader(cluster);
    const bob = await leaveRow(cluster, "bob");
    const sign = { incarnation: bob.incarnation, status: "active", heartbeat: 7, locked: true, held: false };
    assert.deepEqual(await ada.coordination.membership.registry.markDead([sign], ada.term), new Set());
    assert.equal(await statusOf(cluster, bob), "active");
  });

  void test("a node that was marked dead by mistake comes back by itself, and is not laid to rest", async () => {
    await using cluster = await PostgresCluster.open(server);
    const ada = await leader(cluster);
    const identity = candidate("bob", systemRandom.uuid());
    const bob = await cluster.start("bob", { identity, settings: QUICK });
    await bob.membership.setStatus("draining");
    await cluster.sql(`UPDATE baton.node SET status = 'dead' WHERE name = 'bob'`);
    await eventually("bob is back", async () => (await statusOf(cluster, identity)) === "draining");
    await ada.coordination.membership.laidToRest([identity], ada.term);
    const rows = await cluster.sql("SELECT recovered FROM baton.node WHERE name = 'bob'");
    assert.deepEqual(rows, [{ recovered: false }]);
    assert.deepEqual(await ada.coordination.membership.findDead(ada.term), []);
  });

  void test("a node whose connection broke is back before anybody takes it for dead", async () => {
    await using cluster = await PostgresCluster.open(server);
    await settled(cluster);
    const ada = await leader(cluster);
    const identity = candidate("bob", systemRandom.uuid());
    await cluster.start("bob", { identity, settings: QUICK });
    await ada.nobodyDead(100);
    for (let round = 0; round < 3; round++) {
      await endSessions(cluster, identity);
      await ada.nobodyDead(400);
    }
  });

  void test("a second node of a name is refused while the first lives, with what to do about it", async () => {
    await using cluster = await PostgresCluster.open(server);
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
    assert.equal((await cluster.sql("SELECT 1 FROM baton.node WHERE name = 'bob'")).length, 1);
  });

  void test("a node that was taken for dead and whose name another has taken says so, until the name is free again", async () => {
    await using cluster = await PostgresCluster.open(server);
    const bob = await cluster.start("bob", { settings: QUICK });
    assert.equal(bob.membership.displaced(), null);
    await cluster.sql("UPDATE baton.node SET status = 'dead', name = 'away' WHERE name = 'bob'");
    const other = await leaveRow(cluster, "bob");
    await eventually("it to know", async () => bob.membership.displaced() !== null);
    assert.match(bob.membership.displaced()!, /another has taken the name bob/);
    await cluster.sql(`DELETE FROM baton.node WHERE incarnation = '${other.incarnation}'`);
    await eventually("it to be back", async () => bob.membership.displaced() === null);
  });

  void test("a predecessor whose session is gone does not hold up a restart, however young its heartbeat", async () => {
    await using cluster = await PostgresCluster.open(server);
    await settled(cluster);
    const gone = await leaveRow(cluster, "bob");
    const startedAt = systemClock.monotonic();
    const bob = await cluster.start("bob", { settings: QUICK });
    assert.ok(
      systemClock.monotonic() - startedAt < QUICK.deadAfterMs,
      "waited for its heartbeat to grow old",
    );
    assert.equal(await statusOf(cluster, gone), "dead");
    const shown = bob.membership.nodes();
    assert.deepEqual(
      shown.map(({ name, status, alive }) => ({ name, status, alive })),
      [
        { name: "bob", status: "joining", alive: true },
        { name: "bob", status: "dead", alive: false },
      ],
    );
  });

  void test("a predecessor without a session is waited for until its heartbeat is old", async () => {
    await using cluster = await PostgresCluster.open(server);
    const gone = await leaveRow(cluster, "bob", { locked: false });
    const startedAt = systemClock.monotonic();
    await cluster.start("bob", { settings: QUICK });
    assert.ok(systemClock.monotonic() - startedAt >= QUICK.deadAfterMs - 100);
    assert.equal(await statusOf(cluster, gone), "dead");
  });

  void test("a node that stops is not in the list any more, and its lock is free", async () => {
    await using cluster = await PostgresCluster.open(server);
    const ada = await leader(cluster);
    const bob = await cluster.start("bob", { settings: QUICK });
    await eventually("bob is seen", () => ada.coordination.membership.nodes().length === 2);
    await bob.stop();
    await eventually("bob is gone", () => ada.coordination.membership.nodes().length === 1);
    assert.deepEqual(await cluster.sql("SELECT 1 FROM baton.node WHERE name = 'bob'"), []);
  });

  void test("a node that says nothing looks less and less alive, and cannot be asked for anything", async () => {
    await using cluster = await PostgresCluster.open(server);
    const ada = await cluster.start("ada", { settings: QUICK });
    await leaveRow(cluster, "bob", { heartbeatAgoMs: QUICK.deadAfterMs - 200 });
    const alive = (): boolean | undefined => ada.membership.nodes().find(({ name }) => name === "bob")?.alive;
    await eventually("bob looks alive", () => alive() === true);
    await eventually("bob does not", () => alive() === false);
    assert.equal(await ada.membership.ask("bob" as NodeName, "drain"), false);
  });

  void test("a wish is heard within moments, though heartbeats are far apart, and by polling where nothing is told", async () => {
    await using cluster = await PostgresCluster.open(server);
    const bob = await cluster.start("bob", {
      settings: { ...QUICK, heartbeatMs: 60_000, deadAfterMs: 600_000 },
    });
    const over = new AbortController();
    const wishes = bob.membership.wishes(over.signal)[Symbol.asyncIterator]();
    assert.equal(await bob.membership.ask("bob" as NodeName, "drain"), true);
    assert.deepEqual(await wishes.next(), { done: false, value: "drain" });

    const cyd = await cluster.start("cyd", { settings: QUICK });
    await cluster.sql("UPDATE baton.node SET wish = 'resume' WHERE name = 'cyd'");
    assert.deepEqual(await cyd.membership.wishes(over.signal)[Symbol.asyncIterator]().next(), {
      done: false,
      value: "resume",
    });
    await eventually("it is cleared", async () => {
      const rows = await cluster.sql("SELECT 1 FROM baton.node WHERE wish IS NOT NULL");
      return rows.length === 0;
    });
    over.abort();
  });

  void test("the registry answers what the database has", async () => {
    await using cluster = await PostgresCluster.open(server);
    const identity = candidate("ada", systemRandom.uuid());
    const { registry } = (await cluster.start("ada", { identity, settings: QUICK })).membership;
    await registry.setStatus("active");
    const dead = await leaveRow(cluster, "bob", { status: "dead" });
    await leaveRow(cluster, "cyd", { status: "hibernating" });
    const names = (nodes: readonly { name: string }[]): string[] => nodes.map(({ name }) => name);
    assert.deepEqual(names(await registry.nodes()), ["ada", "bob", "cyd"]);
    assert.deepEqual(names(await registry.activeNodes()), ["ada"]);
    assert.deepEqual(names(await registry.nodesByStatus("dead")), ["bob"]);
    assert.deepEqual(await registry.countByStatus(), {
      joining: 0,
      active: 1,
      draining: 0,
      dead: 1,
      total: 3,
    });
    const own = (await registry.node(identity.incarnation))!;
    assert.deepEqual(own, {
      ...OWN_INFO,
      ...identity,
      status: "active",
      alive: true,
      lastSeenAt: own.lastSeenAt,
    });
    assert.equal((await registry.node(dead.incarnation))?.load.cpu, 0, "what an older version did not say");
    assert.equal(await registry.node("nobody"), null);
  });

  lifecycleStress("postgres coordination", async () => {
    const cluster = await PostgresCluster.open(server);
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

void test("a restart of the server makes nobody dead, and everybody goes on", async () => {
  const own = await PostgresServer.start();
  try {
    await using cluster = await PostgresCluster.open(own);
    const settings = { heartbeatMs: 50, deadAfterMs: 1_500, forgetAfterMs: 3_600_000 };
    const ada = await leader(cluster, { settings });
    const identity = candidate("bob", systemRandom.uuid());
    const bob = await cluster.start("bob", { identity, settings });
    await eventually("bob is seen", () => ada.coordination.membership.nodes().length === 2);
    const before = (await ada.coordination.lock(ROLE).read())!;
    await own.halt("fast");
    await own.relaunch();
    let looks = 0;
    for (const until = systemClock.monotonic() + 2_500; systemClock.monotonic() < until;) {
      try {
        assert.deepEqual(await ada.coordination.membership.findDead(before), []);
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
    const [row] = await cluster.sql(
      `SELECT locked FROM baton.node WHERE incarnation = '${identity.incarnation}'`,
    );
    assert.equal(row!["locked"], true, "it holds the lock of its life again");
  } finally {
    await own.stop();
  }
});
