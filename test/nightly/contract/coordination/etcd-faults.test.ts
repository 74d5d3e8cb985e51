/** An etcd that forgets, stands still or is restarted: who leads, and under which epoch the store takes writes. */

import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import type { ElectorSettings } from "../../../../src/leadership/elector.ts";
import { hasCode } from "../../../../src/core/errors.ts";
import { systemClock } from "../../../../src/platform/clock.ts";
import { EtcdServer } from "../../../support/etcd-server.ts";
import { candidate } from "../../../support/lock-candidates.ts";
import { EtcdCluster, openEtcdElection } from "../../../support/lock-etcd.ts";
import { ROLE } from "../../../support/lock-world.ts";
import { PostgresServer } from "../../../support/postgres-server.ts";
import {
  admittedFaults,
  ELECTION,
  QUICK,
  survives,
  withServer,
} from "../../../contract/coordination/admitted-faults.ts";
import { eventually } from "../../../support/wait.ts";

const [etcd, postgres] = await Promise.all([EtcdServer.start(), PostgresServer.start()]);
after(() => Promise.all([etcd.stop(), postgres.stop()]));

/** The first renewal is far away: whoever steps down before was told. */
const SELDOM: ElectorSettings = { leaseMs: 30_000, renewMs: 10_000, marginMs: 7_500, retryMs: 150 };

admittedFaults("an etcd", {
  server: () => etcd,
  start: () => EtcdServer.start(),
  cluster: (server) => new EtcdCluster(server),
  election: (server) => openEtcdElection(server, postgres),
});

void describe("an etcd that forgets", () => {
  void test("a key that an operator deleted: the holder steps down at once, and the next epoch is higher", () =>
    survives(openEtcdElection(etcd, postgres), SELDOM, ({ cluster }) =>
      etcd.remove(cluster.key("leader", ROLE)),
    ));

  void test("a lease that an operator revoked: the same", () =>
    survives(openEtcdElection(etcd, postgres), SELDOM, async ({ cluster }) => {
      const [leader] = await etcd.entries(cluster.key("leader", ""));
      await etcd.revoke(leader!.lease);
    }));

  void test("a key that somebody wrote over: the same, with the next renewal", () =>
    survives(openEtcdElection(etcd, postgres), ELECTION, ({ cluster }) =>
      etcd.put(cluster.key("leader", ROLE), "mine"),
    ));

  void test("everything of the cluster deleted: the same", () =>
    survives(openEtcdElection(etcd, postgres), SELDOM, ({ cluster }) => etcd.removeAll(cluster.key(""))));

  void test("a restart with nothing left: the same, though its revisions begin anew", () =>
    withServer(
      () => EtcdServer.start(),
      async (server) => {
        // So that epochs of before are above what the new one would give out.
        for (let i = 0; i < 300; i++) await server.put("ballast", String(i));
        await survives(openEtcdElection(server, postgres), ELECTION, async () => {
          await server.halt();
          await server.relaunch("empty");
        });
      },
    ));
});

void describe("an etcd that does not answer", () => {
  void test("a call ends with its deadline, its outcome is unknown, and a grant that comes late keeps nobody out for long", () =>
    withServer(
      () => EtcdServer.start(),
      async (server) => {
        await using cluster = new EtcdCluster(server);
        const settings = QUICK;
        const [ada, bob] = [
          await cluster.start("ada", { settings }),
          await cluster.start("bob", { settings }),
        ];
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
        const term = await eventually("bob's term", () => ask().catch(() => null));
        assert.equal(term.leader, "bob");
      },
    ));
});
