/** The list of nodes in etcd. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { SESSION_GONE_MS } from "../../../src/core/leadership/failure-detector.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { systemRandom } from "../../../src/platform/random.ts";
import { EtcdServer } from "../../support/etcd-server.ts";
import { candidate } from "../../support/lock-candidates.ts";
import { EtcdCluster } from "../../support/lock-etcd.ts";
import { eventually } from "./membership.ts";
import { BROKEN } from "./node-deaths.ts";
import { UNSEEN } from "./node-names.ts";
import { CALM, leader, QUICK, type NodesWorld } from "./nodes-world.ts";
import { registeredNodesContract } from "./registered-nodes.ts";

let server: EtcdServer;
before(async () => {
  server = await EtcdServer.start();
});
after(() => server.stop());

interface Written {
  readonly name: string;
  readonly status: string;
  readonly recovered: boolean;
}

/** A life is the lease under which a node has its name; here nobody's lease, so that it goes on or is missing as wanted. */
function etcdNodes() {
  const cluster = new EtcdCluster(server);
  const row = ({ incarnation }: { readonly incarnation: string }): string => cluster.key("node", incarnation);

  const leaveEntry: NodesWorld["leaveEntry"] = async (name, { status = "active", unseen = false } = {}) => {
    const identity = candidate(name, systemRandom.uuid());
    const info = { hostname: "there", version: "9.9.9" };
    const entry = { name, status, at: systemClock.now(), recovered: false, info };
    // The name first: nobody ever sees the entry of a living node without it.
    if (unseen) await server.put(cluster.key("name", name), identity.incarnation);
    await server.put(row(identity), JSON.stringify(entry));
    return identity;
  };

  return {
    cluster,
    leaveEntry,
    entry: async (who) => {
      const [found] = await server.entries(row(who));
      if (!found) return null;
      const { status, recovered } = JSON.parse(found.value) as Written;
      const request = await server.value(cluster.key("request", who.incarnation));
      return { status, recovered, heartbeat: found.revision, request };
    },
    write: async (who, fields) => {
      if ("request" in fields) return server.put(cluster.key("request", who.incarnation), fields.request);
      const written = JSON.parse((await server.value(row(who)))!) as Written;
      return server.put(row(who), JSON.stringify({ ...written, ...fields }));
    },
    remove: async (who) => {
      const name = cluster.key("name", who.name);
      if ((await server.value(name)) === who.incarnation) await server.remove(name);
      await server.remove(row(who));
    },
    loseList: () => server.removeAll(cluster.key("n")),
    count: async () => (await server.entries(cluster.key("node", ""))).length,
    displace: ({ name }) => leaveEntry(name, { unseen: true }),
    endConnections: () => assert.fail("a life is no connection"),
    settled: async () => {},
  } satisfies NodesWorld;
}

registeredNodesContract("etcd", async () => etcdNodes(), {
  leaderDoubts: true,
  slackMs: 10,
  skip: {
    [BROKEN]: "a life is a lease of etcd, and not a connection to it",
    [UNSEEN]: "the end of a lease is always seen",
  },
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

void test("of two nodes of one name that start in the same moment one gets it", async () => {
  await using cluster = new EtcdCluster(server);
  const starts = await Promise.allSettled(
    Array.from({ length: 4 }, () => cluster.start("bob", { settings: { ...QUICK, deadAfterMs: 200 } })),
  );
  assert.equal(starts.filter(({ status }) => status === "fulfilled").length, 1);
  assert.equal((await server.entries(cluster.key("node", ""))).length, 1);
});

void test("a node that stops gives its name back", async () => {
  await using cluster = new EtcdCluster(server);
  const bob = await cluster.start("bob", { settings: QUICK });
  assert.notEqual(await server.value(cluster.key("name", "bob")), null);
  await bob.stop();
  assert.equal(await server.value(cluster.key("name", "bob")), null);
});

void test("without a life nobody looks alive", async () => {
  const { cluster, leaveEntry } = etcdNodes();
  await using _ = cluster;
  const { membership } = await cluster.start("ada", { settings: QUICK });
  await leaveEntry("cyd");
  await eventually("cyd is seen", () => membership.nodes().length === 2);
  assert.equal(membership.nodes().find(({ name }) => name === "cyd")?.alive, false);
});

void test("what an older version did not say of itself, and what nobody can read, is shown as nothing", async () => {
  const { cluster, leaveEntry } = etcdNodes();
  await using _ = cluster;
  const bob = await leaveEntry("bob", { unseen: true });
  await server.put(cluster.key("node", "odd"), "][");
  await server.put(cluster.key("node", "zoe"), '{"name":"zoe","status":"active"}');
  const ada = await cluster.start("ada", { settings: QUICK });
  const [, shown, odd, ...rest] = ada.membership.nodes();
  assert.deepEqual([shown?.incarnation, shown?.hostname, shown?.load.cpu], [bob.incarnation, "there", 0]);
  assert.deepEqual([odd?.name, odd?.hostname, odd?.roles, odd?.url], ["zoe", "unknown", [], null]);
  assert.deepEqual(rest, []);
});
