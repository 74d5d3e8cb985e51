/** An etcd of several members, some of which are away, and one that wants to know who asks. */

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { ElectorSettings } from "../../../../src/leadership/elector.ts";
import { hasCode } from "../../../../src/core/errors.ts";
import { systemClock } from "../../../../src/platform/clock.ts";
import { systemRandom } from "../../../../src/platform/random.ts";
import { EtcdServer } from "../../../support/etcd-server.ts";
import { hangingAddress } from "../../../support/hanging-address.ts";
import { candidate, granted } from "../../../support/lock-candidates.ts";
import { EtcdCluster, openEtcdElection } from "../../../support/lock-etcd.ts";
import { leads, standsBy } from "../../../support/lock-admitted-election.ts";
import type { Stander } from "../../../support/lock-cluster.ts";
import { ROLE } from "../../../support/lock-world.ts";
import { PostgresServer } from "../../../support/postgres-server.ts";
import { eventually } from "../../../support/wait.ts";

let members: EtcdServer[];
let postgres: PostgresServer;
before(async () => {
  [members, postgres] = await Promise.all([EtcdServer.startCluster(3), PostgresServer.start()]);
});
after(() => Promise.all([postgres.stop(), ...members.map((member) => member.stop())]));

const ELECTION: ElectorSettings = { leaseMs: 5_000, renewMs: 1_000, marginMs: 1_500, retryMs: 500 };
const TTL_MS = 60_000;

const urls = (): string => members.map((member) => member.url()).join(",");
const oneLeader = (standers: readonly Stander[]) =>
  eventually("one leader", () => {
    const held = standers.flatMap(({ elector }) => elector.held() ?? []);
    return held.length === 1 && held[0];
  });

void describe("an etcd of several members", () => {
  void test("the first address is dead: the next one is used, and people are told", async () => {
    await using cluster = new EtcdCluster(members[0]!);
    const ada = await cluster.start("ada", { url: `http://127.0.0.1:1,${urls()}` });
    const lock = ada.lock(ROLE);
    const term = await granted(lock, candidate("ada"), TTL_MS);
    assert.equal(await lock.renew(term, TTL_MS), true);
    assert.equal(ada.notes().length, 1);
    assert.match(ada.notes()[0]!, /127\.0\.0\.1:1 did not answer.*ECONNREFUSED.*another member/);
    assert.ok((await members[1]!.entries(cluster.key("leader", ""))).length === 1, "all members know");
  });

  void test("the first address hangs: the start takes a deadline longer, and then the next one is used", async (t) => {
    await using cluster = new EtcdCluster(members[0]!);
    const url = `${await hangingAddress(t)},${urls()}`;
    const settings = { heartbeatMs: 100, deadAfterMs: 2_000 };
    const startedAt = systemClock.monotonic();
    const ada = await cluster.start("ada", { url, settings });
    assert.ok(systemClock.monotonic() - startedAt < 2_000);
    await granted(ada.lock(ROLE), candidate("ada"), TTL_MS);
  });

  void test("the member that the leader uses stands still: a call is given up, and the leader renews at the next member", async (t) => {
    await using election = await openEtcdElection(members[2]!, postgres);
    await using ada = await election.stander("ada", ELECTION, { url: urls() });
    const term = await leads(ada);
    const lock = ada.coordination.lock(ROLE);
    members[0]!.pause();
    t.after(() => members[0]!.resume());
    const pausedAt = systemClock.now();
    const renewed = await eventually("a renewal elsewhere", async () => {
      const tenure = await lock.tenure().catch(() => null);
      return tenure && tenure.leaseUntil - ELECTION.leaseMs > pausedAt && tenure;
    });
    t.diagnostic(`renewed elsewhere after ${systemClock.now() - pausedAt} ms`);
    if (renewed.epoch !== term.epoch) t.diagnostic("under another term");
    assert.equal(await election.takes(renewed), true);
    members[0]!.resume();
  });

  void test("every member that a node uses is killed in turn: somebody leads, and no stale term writes", async () => {
    await using election = await openEtcdElection(members[0]!, postgres);
    await using ada = await election.stander("ada", ELECTION, { url: urls() });
    let term = await leads(ada);
    await using bob = await election.stander("bob", ELECTION, { url: urls() });
    await standsBy(bob);
    for (const member of members.slice(0, 2)) {
      await member.halt();
      // It goes on without this member: a renewal that was asked for after its end is answered.
      const killedAt = systemClock.now();
      await eventually("a renewal by those who are left", async () => {
        const tenure = await ada.coordination
          .lock(ROLE)
          .tenure()
          .catch(() => null);
        return tenure && tenure.leaseUntil - ELECTION.leaseMs > killedAt;
      });
      const now = await oneLeader([ada, bob]);
      if (now.epoch !== term.epoch) assert.equal(await election.takes(term), false);
      assert.equal(await election.takes(now), true);
      term = now;
      await member.relaunch();
    }
  });
});

void describe("an etcd that wants to know who asks", () => {
  void test("a user with a password is let in, also after tokens were forgotten; others are refused with what to look at", async (t) => {
    const server = await EtcdServer.start();
    t.after(() => server.stop());
    await using cluster = new EtcdCluster(server);
    const open = await cluster.start("open", { url: server.url("baton:secret") });
    await open.stop();
    const range = { key: `${cluster.prefix}/`, range_end: `${cluster.prefix}0` };
    const base64 = (text: string): string => Buffer.from(text).toString("base64");
    for (const user of ["root", "baton", "stranger"]) {
      await server.call("auth/user/add", { name: user, password: "secret" });
      await server.call("auth/role/add", { name: user });
      await server.call("auth/user/grant", { user, role: user });
    }
    await server.call("auth/role/grant", {
      name: "baton",
      perm: { permType: "READWRITE", key: base64(range.key), range_end: base64(range.range_end) },
    });
    await server.call("auth/enable", {});

    const identity = candidate("ada", systemRandom.uuid());
    const ada = await cluster.start("ada", { identity, url: server.url("baton:secret") });
    const term = await granted(ada.lock(ROLE), identity, TTL_MS);
    await server.halt();
    await server.relaunch();
    assert.equal(
      await eventually("a renewal with a new token", () =>
        ada
          .lock(ROLE)
          .renew(term, TTL_MS)
          .catch(() => null),
      ),
      true,
    );
    // The watch was let in too.
    const over = new AbortController();
    t.after(() => over.abort());
    const hint = ada.lock(ROLE).released(over.signal)[Symbol.asyncIterator]().next();
    const who = { name: "baton", password: "secret" };
    const { token } = await server.call<{ token: string }>("auth/authenticate", who);
    await server.call("kv/deleterange", { key: base64(cluster.key("leader", ROLE)) }, token);
    assert.equal((await hint).done, false);
    for (const user of ["", "baton:wrong", "stranger:secret"]) {
      await assert.rejects(cluster.start("bob", { url: server.url(user) }), (error: unknown) => {
        assert.ok(hasCode(error, "BAD_CONFIG"), `${user}: ${String(error)}`);
        assert.match(error.message, /check user and password in etcd\.url/);
        assert.doesNotMatch(error.message, /wrong@|secret/);
        return true;
      });
    }
  });
});
