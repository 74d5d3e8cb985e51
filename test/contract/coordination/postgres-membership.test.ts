/** The list of nodes on PostgreSQL: who is in it, who is dead, and whose name it is. */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { systemRandom } from "../../../src/platform/random.ts";
import { lifecycleStress } from "../../support/lifecycle-stress.ts";
import { candidate, granted, OWN_INFO } from "../../support/lock-candidates.ts";
import { PostgresCluster } from "../../support/lock-postgres.ts";
import { ROLE } from "../../support/lock-world.ts";
import { PostgresServer } from "../../support/postgres-server.ts";
import { eventually } from "../../support/wait.ts";
import { prove } from "../promises.ts";
import { membershipContract } from "./membership.ts";
import { deathPromises } from "./node-deaths.ts";
import { namePromises } from "./node-names.ts";
import { goOn, leader, openNodes, QUICK, type NodesWorld } from "./nodes-world.ts";

membershipContract("postgres", async () => {
  const { cluster } = await openNodes();
  const identity = candidate("ada", systemRandom.uuid());
  const ada = await cluster.start("ada", { identity, settings: QUICK });
  return {
    membership: ada.membership,
    identity,
    info: OWN_INFO,
    fence: await granted(ada.lock(ROLE), identity, 60_000),
    join: async (another) => (await cluster.start(another, { settings: QUICK })).membership,
    close: () => cluster[Symbol.asyncDispose](),
  };
});

const within = async (proof: (world: NodesWorld) => Promise<void>): Promise<void> => {
  const world = await openNodes();
  await using _ = world.cluster;
  await proof(world);
};
prove("nodes on postgres", { ...deathPromises(), ...namePromises }, within, {}, { concurrency: 4 });

describe("coordination on postgres", () => {
  lifecycleStress("postgres coordination", async () => {
    const { cluster } = await openNodes();
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

void test("the registry answers what the database has", async () => {
  const { cluster, leaveEntry } = await openNodes();
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
