/** What nodes sign their calls with: not started without it where others can reach them, changed while all goes on. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { roleOf } from "../../support/cluster.ts";
import { listedFile, TEST_SECRET } from "../../support/host-cluster.ts";
import { clusterSectionFile, PeerCluster, QUICK_PEERS } from "../../support/peer-cluster.ts";
import { eventually } from "../../support/wait.ts";

const REMEDY = /type `baton secret create --file baton\.secret`.*BATON_SECRET_FILE/;
const BAD_CONFIG = 78;

describe("a node that others can reach", () => {
  it("does not start with a password that everybody knows from an example, and does with a secret", async (t) => {
    const cluster = await PeerCluster.open(t, {
      names: ["node1"],
      file: (plan) => {
        const { file, text } = clusterSectionFile()(plan);
        return { file, text: text.replaceAll("localhost", "0.0.0.0").replace("127.0.0.1", "0.0.0.0") };
      },
    });
    const refused = await cluster.spawn("node1");
    assert.equal((await refused.exited).code, BAD_CONFIG);
    assert.match(refused.stderr, /manager\.pass is known to everybody/);
    assert.match(refused.stderr, REMEDY);
    const loud = await cluster.start("node1", { settings: { CLUSTER__INSECURE: "true" } });
    const { notes } = await loud.client.cluster.info();
    for (const text of [loud.stdout, loud.stderr, notes.join("\n")]) assert.match(text, /INSECURE/);
    await loud.kill();
  });
});

it("a node with another secret is refused, both sides say why, and it works when it has the right one", async (t) => {
  const cluster = await PeerCluster.open(t, {
    file: listedFile,
    // Nobody loses a lease here, and a busy machine must not end one.
    settings: { ...QUICK_PEERS, LEADER__LEASE: "10s", SECRET: TEST_SECRET },
  });
  await cluster.startAll("node-a", "node-b");
  const { epoch } = await cluster.leader();
  const other = TEST_SECRET.slice(16) + TEST_SECRET.slice(0, 16);
  const stranger = await cluster.spawn("node-c", { settings: { SECRET: other } });
  await stranger.listening();
  const why = /secret/i;
  for (const [who, node] of [
    ["node-c", stranger],
    ["node-a", cluster.node("node-a")],
  ] as const) {
    await eventually(`${who} to say why in its log`, async () => why.test(node.stdout));
    await eventually(`${who} to say why in its status`, async () => {
      const { notes } = await node.client.cluster.info();
      return why.test(notes.join("\n"));
    });
    assert.ok(!node.stdout.includes(other) && !node.stdout.includes(TEST_SECRET), "no secret is logged");
  }
  assert.equal((await roleOf(stranger))?.role, "STANDBY");
  assert.equal((await cluster.leader()).epoch, epoch);
  await stranger.kill();
  await cluster.restart("node-c");
});
