/** The list of nodes on PostgreSQL. */

import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { NodeIdentity } from "../../../src/core/node.ts";
import { applicationPrefix } from "../../../src/platform/drivers/postgres/session.ts";
import { systemRandom } from "../../../src/platform/random.ts";
import { candidate, OWN_INFO } from "../../support/lock-candidates.ts";
import { PostgresCluster } from "../../support/lock-postgres.ts";
import { PostgresServer } from "../../support/postgres-server.ts";
import { goOn, leader, QUICK, type Entry, type EntryFields, type NodesWorld } from "./nodes-world.ts";
import { registeredNodesContract } from "./registered-nodes.ts";
import { eventually } from "../../support/wait.ts";

const server = await PostgresServer.shared();
after(() => server.stop());

async function postgresNodes() {
  const cluster = await PostgresCluster.open(server);
  const at = ({ incarnation }: NodeIdentity): string => `WHERE incarnation = '${incarnation}'`;

  const entering = ({ name, incarnation }: NodeIdentity, fields: EntryFields = {}): string => {
    const { status = "active", unseen = false, heartbeatAgoMs = 0 } = fields;
    return `INSERT INTO baton.node (incarnation, name, hostname, roles, capabilities, version, status, started_at,
        last_heartbeat, load, info, locked)
      VALUES ('${incarnation}', '${name}', 'there', '{}', '{}', '9.9.9', '${status}', 1000000,
        (extract(epoch FROM clock_timestamp()) * 1000)::bigint - ${heartbeatAgoMs}, '{}', '{}', ${!unseen})`;
  };

  return {
    cluster,
    leaveEntry: async (name, fields) => {
      const identity = candidate(name, systemRandom.uuid());
      await cluster.sql(entering(identity, fields));
      return identity;
    },
    entry: async (who) => {
      const [row] = await cluster.sql(
        `SELECT status, recovered, last_heartbeat::float AS heartbeat, wish AS request FROM baton.node ${at(who)}`,
      );
      return (row as Entry | undefined) ?? null;
    },
    write: (who, fields) => {
      const set = Object.entries(fields).map(
        ([name, value]) => `${name === "request" ? "wish" : name} = '${value}'`,
      );
      return cluster.sql(`UPDATE baton.node SET ${set.join(", ")} ${at(who)}`);
    },
    remove: (who) => cluster.sql(`DELETE FROM baton.node ${at(who)}`),
    loseList: () => cluster.sql("DELETE FROM baton.node"),
    count: async () => (await cluster.sql("SELECT 1 FROM baton.node")).length,
    // In one transaction: with its next heartbeat it would have its name back.
    displace: async (who) => {
      const other = candidate(who.name, systemRandom.uuid());
      await cluster.sql(
        `UPDATE baton.node SET status = 'dead' ${at(who)}; ${entering(other, { unseen: true })}`,
      );
      return other;
    },
    endConnections: ({ incarnation }) =>
      cluster.sql(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE starts_with(application_name, '${applicationPrefix(incarnation)}')`,
      ),
    settled: async (forMs) => {
      await eventually("a server that has run for a while", async () => {
        const text = "SELECT extract(epoch FROM clock_timestamp() - pg_postmaster_start_time()) * 1000 AS up";
        return Number((await cluster.sql(text))[0]!["up"]) > forMs;
      });
    },
  } satisfies NodesWorld;
}

registeredNodesContract("postgres", postgresNodes);

void test("the registry answers what the database has", async () => {
  const { cluster, leaveEntry } = await postgresNodes();
  await using _ = cluster;
  const identity = candidate("ada", systemRandom.uuid());
  const { registry } = (await cluster.start("ada", { identity, settings: QUICK })).membership;
  await registry.setStatus("active");
  const dead = await leaveEntry("bob", { status: "dead" });
  await leaveEntry("cyd", { status: "hibernating" });
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

void test("a restart of the server makes nobody dead, and everybody goes on", async () => {
  const own = await PostgresServer.start();
  try {
    await using cluster = await PostgresCluster.open(own);
    const settings = { ...QUICK, deadAfterMs: 1_500 };
    const { coordination: ada, term } = await leader(cluster, { settings });
    const identity = candidate("bob", systemRandom.uuid());
    const bob = await cluster.start("bob", { identity, settings });
    await eventually("bob is seen", () => ada.membership.nodes().length === 2);
    await own.halt("fast");
    await own.relaunch();
    await goOn(ada, term, bob);
    const [row] = await cluster.sql(
      `SELECT locked FROM baton.node WHERE incarnation = '${identity.incarnation}'`,
    );
    assert.equal(row!["locked"], true, "it holds the lock of its life again");
  } finally {
    await own.stop();
  }
});
