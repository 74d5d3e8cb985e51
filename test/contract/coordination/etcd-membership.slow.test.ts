/** The list of nodes in etcd: who is dead, who only looked like it, and whose name it is. */

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { EtcdCoordination } from "../../../src/coordination/etcd/etcd.ts";
import { hasCode } from "../../../src/core/errors.ts";
import { SESSION_GONE_MS } from "../../../src/core/failure-detector.ts";
import type { NodeName } from "../../../src/core/ids.ts";
import type { NodeIdentity } from "../../../src/core/node.ts";
import type { Term } from "../../../src/core/term.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { systemRandom } from "../../../src/platform/random.ts";
import { EtcdServer } from "../../support/etcd-server.ts";
import { lifecycleStress } from "../../support/lifecycle-stress.ts";
import { candidate, granted } from "../../support/lock-candidates.ts";
import { EtcdCluster, type EtcdMemberOptions } from "../../support/lock-etcd.ts";
import { OWN_INFO } from "../../support/lock-postgres.ts";
import { ROLE } from "../../support/lock-world.ts";
import { eventually, membershipContract } from "./membership.ts";

let server: EtcdServer;
before(async () => {
  server = await EtcdServer.start();
});
after(() => server.stop());

/** Quick, so that heartbeats matter within a test. */
const QUICK = { heartbeatMs: 50, deadAfterMs: 600, forgetAfterMs: 3_600_000 };
const CALM = { ...QUICK, deadAfterMs: 2_000 };

membershipContract("etcd", async () => {
  const cluster = new EtcdCluster(server);
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
  readonly coordination: EtcdCoordination;
  readonly term: Term;
  /** Looks as often as a leader does, until somebody is found. */
  readonly firstDead: () => Promise<readonly NodeIdentity[]>;
  /** Looks for so long, and nobody is found. */
  readonly nobodyDead: (ms: number) => Promise<void>;
}

async function leader(cluster: EtcdCluster, options: EtcdMemberOptions = {}): Promise<Leader> {
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

/** A node that is not there any more: only its entry is, and its name if its lease still runs. */
async function leaveEntry(
  cluster: EtcdCluster,
  name: string,
  { status = "active", named = false }: { status?: string; named?: boolean } = {},
): Promise<NodeIdentity> {
  const identity = candidate(name, systemRandom.uuid());
  const info = { hostname: "there", version: "9.9.9" };
  const entry = { name, status, at: systemClock.now(), recovered: false, info };
  // The name first: nobody ever sees the entry of a living node without it.
  if (named) await server.put(cluster.key("name", name), identity.incarnation);
  await server.put(cluster.key("node", identity.incarnation), JSON.stringify(entry));
  return identity;
}

async function entryOf(
  cluster: EtcdCluster,
  { incarnation }: NodeIdentity,
): Promise<{ readonly status: string; readonly recovered: boolean } | null> {
  return JSON.parse((await server.value(cluster.key("node", incarnation))) ?? "null") as null;
}

const count = async (cluster: EtcdCluster): Promise<number> =>
  (await server.entries(cluster.key("node", ""))).length;
const isStale = (error: unknown): boolean => hasCode(error, "STALE_EPOCH");

function listeningLog() {
  const warned: string[] = [];
  const note = (_: object, message: string): void => void warned.push(message);
  return { warned, log: { debug: note, info: note, warn: note, error: note } };
}

void describe("nodes on etcd", () => {
  void test("nodes whose life has ended are found dead before their heartbeat is old, whatever they did", async (t) => {
    await using cluster = new EtcdCluster(server);
    const ada = await leader(cluster, { settings: CALM });
    // A leader that has not known etcd for long takes no missing life for a death.
    await ada.nobodyDead(CALM.deadAfterMs + 100);
    const statuses = ["joining", "active", "draining"];
    const gone = await Promise.all(
      statuses.map((status) => leaveEntry(cluster, `was-${status}`, { status })),
    );
    const startedAt = systemClock.monotonic();
    const dead = await ada.firstDead();
    const tookMs = systemClock.monotonic() - startedAt;
    t.diagnostic(`found dead after ${tookMs.toFixed(0)} ms`);
    assert.deepEqual(new Set(dead.map(({ name }) => name)), new Set(gone.map(({ name }) => name)));
    assert.ok(tookMs >= SESSION_GONE_MS - 10 && tookMs < CALM.deadAfterMs / 2, `took ${tookMs} ms`);
    for (const each of gone) assert.equal((await entryOf(cluster, each))?.status, "dead");
  });

  void test("a node whose life goes on and that says nothing is found dead by its heartbeat, after a whole watch of this very term", async () => {
    await using cluster = new EtcdCluster(server);
    const ada = await leader(cluster);
    const gone = await leaveEntry(cluster, "bob", { named: true });
    const startedAt = systemClock.monotonic();
    assert.deepEqual(await ada.firstDead(), [gone]);
    assert.ok(
      systemClock.monotonic() - startedAt >= QUICK.deadAfterMs - 10,
      "was not watched for long enough",
    );

    await leaveEntry(cluster, "cyd", { named: true });
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

  void test("the dead are told until they are laid to rest, also to the next leader, and then forgotten in time", async () => {
    await using cluster = new EtcdCluster(server);
    const settings = { ...QUICK, forgetAfterMs: 200 };
    const ada = await leader(cluster, { settings });
    const gone = await leaveEntry(cluster, "bob");
    await ada.firstDead();
    const { membership } = ada.coordination;
    assert.deepEqual(await membership.findDead(ada.term), [gone]);

    const identity = candidate("next", systemRandom.uuid());
    const next = await cluster.start("next", { identity, settings });
    await ada.coordination.lock(ROLE).release(ada.term);
    const term = await granted(next.lock(ROLE), identity, 60_000);
    assert.deepEqual(await next.membership.findDead(term), [gone], "without watching again");
    await next.membership.laidToRest([gone], term);
    assert.deepEqual(await next.membership.findDead(term), []);
    assert.equal((await entryOf(cluster, gone))?.recovered, true);
    await eventually("forgotten", async () => (await entryOf(cluster, gone)) === null);
  });

  void test("statuses that this version does not know are kept, and their nodes never taken for dead", async () => {
    await using cluster = new EtcdCluster(server);
    const ada = await leader(cluster);
    const odd = await leaveEntry(cluster, "bob", { status: "hibernating" });
    await ada.nobodyDead(QUICK.deadAfterMs + 200);
    assert.equal((await entryOf(cluster, odd))?.status, "hibernating");
    await eventually("it is seen", () =>
      ada.coordination.membership.nodes().some(({ status }) => status === "hibernating"),
    );
  });

  void test("an old leader marks nobody: STALE_EPOCH", async () => {
    await using cluster = new EtcdCluster(server);
    const ada = await leader(cluster);
    const gone = await leaveEntry(cluster, "bob");
    await granted(ada.coordination.lock(ROLE), candidate("leader", ada.term.incarnation), 60_000);
    const { membership } = ada.coordination;
    await assert.rejects(membership.findDead(ada.term), isStale);
    await assert.rejects(membership.laidToRest([gone], ada.term), isStale);
    const sign = { incarnation: gone.incarnation, status: "active", heartbeat: 1, locked: true, held: false };
    await assert.rejects(membership.registry.markDead([sign], ada.term), isStale);
    assert.equal((await entryOf(cluster, gone))?.status, "active");
  });

  void test("a node whose heartbeat came in the meantime is not marked", async () => {
    await using cluster = new EtcdCluster(server);
    const ada = await leader(cluster);
    const bob = await leaveEntry(cluster, "bob");
    const [entry] = await server.entries(cluster.key("node", bob.incarnation));
    const { revision } = entry!;
    const sign = { incarnation: bob.incarnation, status: "active", locked: true, held: false };
    const { registry } = ada.coordination.membership;
    const mark = (heartbeat: number) => registry.markDead([{ ...sign, heartbeat }], ada.term);
    assert.deepEqual(await mark(revision - 1), new Set());
    assert.equal((await entryOf(cluster, bob))?.status, "active");
    assert.deepEqual(await mark(revision), new Set([bob.incarnation]));
  });

  void test("a node that was marked dead by mistake comes back by itself, and is not laid to rest", async () => {
    await using cluster = new EtcdCluster(server);
    const ada = await leader(cluster);
    const identity = candidate("bob", systemRandom.uuid());
    const bob = await cluster.start("bob", { identity, settings: QUICK });
    await bob.membership.setStatus("draining");
    const key = cluster.key("node", identity.incarnation);
    await server.put(key, JSON.stringify({ ...(await entryOf(cluster, identity)), status: "dead" }));
    await eventually("bob is back", async () => (await entryOf(cluster, identity))?.status === "draining");
    await ada.coordination.membership.laidToRest([identity], ada.term);
    assert.equal((await entryOf(cluster, identity))?.recovered, false);
    assert.deepEqual(await ada.coordination.membership.findDead(ada.term), []);
  });

  void test("one that was taken for dead and whose name is somebody else's now is told so, and stays out", async () => {
    await using cluster = new EtcdCluster(server);
    const { warned, log } = listeningLog();
    const first = candidate("bob", systemRandom.uuid());
    await cluster.start("bob", { identity: first, settings: QUICK, log });
    await leaveEntry(cluster, "bob", { named: true });
    await eventually("a warning", () => warned.some((message) => /bob.*restart it under/.test(message)));
    await server.remove(cluster.key("node", first.incarnation));
    await systemClock.sleep(4 * QUICK.heartbeatMs);
    assert.equal(await entryOf(cluster, first), null);
  });

  void test("a node whose lease was revoked, or whose name was deleted, is back long before its next heartbeat", async () => {
    await using cluster = new EtcdCluster(server);
    const settings = { ...CALM, heartbeatMs: 900 };
    const ada = await leader(cluster, { settings });
    const identity = candidate("bob", systemRandom.uuid());
    await cluster.start("bob", { identity, settings });
    await ada.nobodyDead(settings.deadAfterMs + 100);
    const name = cluster.key("name", "bob");
    for (const how of ["revoked", "deleted"]) {
      const [held] = await server.entries(name);
      if (how === "revoked") await server.revoke(held!.lease);
      else await server.remove(name);
      const startedAt = systemClock.monotonic();
      await eventually("the name is back", async () => (await server.value(name)) === identity.incarnation);
      assert.ok(systemClock.monotonic() - startedAt < SESSION_GONE_MS, how);
      await ada.nobodyDead(500);
    }
  });

  void test("a list that somebody has deleted is there again with the next heartbeats, and nobody died", async () => {
    await using cluster = new EtcdCluster(server);
    const ada = await leader(cluster);
    const bob = await cluster.start("bob", { settings: QUICK });
    await bob.membership.setStatus("active");
    await server.removeAll(cluster.key("n"));
    await eventually("everybody is back", async () => (await count(cluster)) === 2);
    await ada.nobodyDead(200);
    await eventually("bob is active", () =>
      ada.coordination.membership.nodes().some(({ name, status }) => name === "bob" && status === "active"),
    );
  });

  void test("a second node of a name is refused while the first lives, with what to do about it", async () => {
    await using cluster = new EtcdCluster(server);
    await cluster.start("bob", {
      settings: QUICK,
      info: () => ({ ...OWN_INFO, startedAt: 1_767_225_600_000 }),
    });
    const { warned, log } = listeningLog();
    const startedAt = systemClock.monotonic();
    await assert.rejects(cluster.start("bob", { settings: QUICK, log }), (error: unknown) => {
      assert.ok(hasCode(error, "NAME_IN_USE"));
      assert.match(error.message, /bob.*host host.*version 1\.2\.3.*2026-01-01T00:00:00.*--name/);
      return true;
    });
    assert.ok(systemClock.monotonic() - startedAt >= 2 * QUICK.deadAfterMs, "gave up early");
    assert.equal(warned.filter((message) => /bob.*waiting/.test(message)).length, 1);
    assert.equal(await count(cluster), 1);
  });

  void test("a node that was taken for dead and whose name another has taken says so, until the name is free again", async () => {
    await using cluster = new EtcdCluster(server);
    const bob = await cluster.start("bob", { settings: QUICK });
    assert.equal(bob.membership.displaced(), null);
    await leaveEntry(cluster, "bob", { named: true });
    await eventually("it to know", async () => bob.membership.displaced() !== null);
    assert.match(bob.membership.displaced()!, /another has taken the name bob/);
    await server.remove(cluster.key("name", "bob"));
    await eventually("it to be back", async () => bob.membership.displaced() === null);
  });

  void test("of two nodes of one name that start in the same moment one gets it", async () => {
    await using cluster = new EtcdCluster(server);
    const starts = await Promise.allSettled(
      Array.from({ length: 4 }, () => cluster.start("bob", { settings: { ...QUICK, deadAfterMs: 200 } })),
    );
    assert.equal(starts.filter(({ status }) => status === "fulfilled").length, 1);
    assert.equal(await count(cluster), 1);
  });

  void test("a predecessor whose life has ended does not hold up a restart, however young its heartbeat", async () => {
    await using cluster = new EtcdCluster(server);
    const gone = await leaveEntry(cluster, "bob");
    const startedAt = systemClock.monotonic();
    const bob = await cluster.start("bob", { settings: CALM });
    assert.ok(systemClock.monotonic() - startedAt < CALM.deadAfterMs / 2, "waited for its heartbeat");
    assert.equal((await entryOf(cluster, gone))?.status, "dead");
    assert.deepEqual(
      bob.membership.nodes().map(({ name, status, alive }) => ({ name, status, alive })),
      [
        { name: "bob", status: "joining", alive: true },
        { name: "bob", status: "dead", alive: false },
      ],
    );
  });

  void test("a node that stops is not in the list any more", async () => {
    await using cluster = new EtcdCluster(server);
    const ada = await leader(cluster);
    const bob = await cluster.start("bob", { settings: QUICK });
    await eventually("bob is seen", () => ada.coordination.membership.nodes().length === 2);
    await bob.stop();
    await eventually("bob is gone", () => ada.coordination.membership.nodes().length === 1);
    assert.equal(await count(cluster), 1);
    assert.equal(await server.value(cluster.key("name", "bob")), null);
  });

  void test("a node that says nothing looks less and less alive, and cannot be asked for anything", async () => {
    await using cluster = new EtcdCluster(server);
    const ada = await cluster.start("ada", { settings: QUICK });
    await leaveEntry(cluster, "bob", { named: true });
    await leaveEntry(cluster, "cyd");
    const alive = (who: string): boolean | undefined =>
      ada.membership.nodes().find(({ name }) => name === who)?.alive;
    await eventually("bob looks alive", () => alive("bob") === true);
    assert.equal(alive("cyd"), false, "without a life nobody looks alive");
    await eventually("bob does not", () => alive("bob") === false);
    assert.equal(await ada.membership.ask("bob" as NodeName, "drain"), false);
  });

  void test("a wish is heard within moments, though heartbeats are far apart", async () => {
    await using cluster = new EtcdCluster(server);
    const bob = await cluster.start("bob", {
      settings: { ...QUICK, heartbeatMs: 60_000, deadAfterMs: 600_000 },
    });
    const over = new AbortController();
    const wishes = bob.membership.wishes(over.signal)[Symbol.asyncIterator]();
    assert.equal(await bob.membership.ask("bob" as NodeName, "drain"), true);
    assert.deepEqual(await wishes.next(), { done: false, value: "drain" });
    over.abort();
  });

  void test("what an older version did not say of itself, and what nobody can read, is shown as nothing", async () => {
    await using cluster = new EtcdCluster(server);
    const bob = await leaveEntry(cluster, "bob", { named: true });
    await server.put(cluster.key("node", "odd"), "][");
    await server.put(cluster.key("node", "zoe"), '{"name":"zoe","status":"active"}');
    const ada = await cluster.start("ada", { settings: QUICK });
    const [, shown, odd, ...rest] = ada.membership.nodes();
    assert.deepEqual([shown?.incarnation, shown?.hostname, shown?.load.cpu], [bob.incarnation, "there", 0]);
    assert.deepEqual([odd?.name, odd?.hostname, odd?.roles, odd?.url], ["zoe", "unknown", [], null]);
    assert.deepEqual(rest, []);
  });

  lifecycleStress("etcd coordination", async () => {
    const cluster = new EtcdCluster(server);
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
