/** The same without root: each node behind a proxy that goes silent, so that others do not reach it (S43). */

import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import { systemClock } from "../../../src/platform/clock.ts";
import { roleOf } from "../../support/cluster.ts";
import { listedFile } from "../../support/host-cluster.ts";
import { LeaderClaims } from "../../support/leader-claims.ts";
import { atEnd, suiteScope } from "../../support/node-cleanup.ts";
import { freePorts } from "../../support/free-port.ts";
import { PeerCluster, QUICK_PEERS } from "../../support/peer-cluster.ts";
import { eventually } from "../../support/wait.ts";
import { TcpProxy } from "../../support/tcp-proxy.ts";

const NAMES = ["node-a", "node-b", "node-c"];
const LEASE_MS = 1_500;

describe("a cluster of nodes behind proxies", () => {
  const suite = suiteScope();
  const proxies = new Map<string, TcpProxy>();
  let cluster: PeerCluster;
  let claims: LeaderClaims;

  before(async () => {
    const ports = await freePorts(NAMES.length);
    for (const [index, name] of NAMES.entries()) {
      const proxy = await TcpProxy.start(`http://127.0.0.1:${ports[index]}`);
      atEnd(suite, () => proxy.stop());
      proxies.set(name, proxy);
    }
    cluster = await PeerCluster.open(suite, {
      names: NAMES,
      file: listedFile,
      settings: QUICK_PEERS,
      url: (name) => new URL(proxies.get(name)!.through("http://node/")).origin,
    });
    const own = (port: number) => ({ HTTP__HOST: "127.0.0.1", HTTP__PORT: String(port) });
    await Promise.all(NAMES.map((name, n) => cluster.start(name, { settings: own(ports[n]!) })));
    await cluster.gathered();
    claims = new LeaderClaims(suite, () => cluster.nodes);
  });

  it("has no leader while nobody reaches anybody, and one when they do again", async (t) => {
    const { epoch } = await cluster.leader();
    for (const proxy of proxies.values()) await proxy.freeze();
    await eventually("nobody to lead", async () => {
      const roles = await Promise.all([...cluster.nodes.values()].map((node) => roleOf(node, 2_000)));
      return roles.every((role) => role !== null && role.leader_id === null) || null;
    });
    await systemClock.sleep(LEASE_MS);
    for (const node of cluster.nodes.values()) assert.equal((await roleOf(node, 2_000))?.role, "STANDBY");
    for (const proxy of proxies.values()) await proxy.forward();
    const healedAt = systemClock.monotonic();
    const next = await cluster.leader(5_000);
    t.diagnostic(`${next.name} leads ${(systemClock.monotonic() - healedAt).toFixed(0)} ms after the heal`);
    assert.ok(next.epoch > epoch);
    await cluster.gathered();
    claims.assertOneAtATime();
  });

  it("has one leader at a time while its leader cannot be called", async (t) => {
    const { name, epoch } = await cluster.leader();
    await proxies.get(name)!.freeze();
    await systemClock.sleep(2 * LEASE_MS);
    const during = await cluster.leader();
    await proxies.get(name)!.forward();
    await cluster.gathered();
    const after = await cluster.leader();
    t.diagnostic(`${name} under ${epoch}, then ${during.name} under ${during.epoch}`);
    assert.equal(after.epoch, during.epoch, "nothing changes when it can be called again");
    assert.ok(during.epoch <= epoch + 1);
    claims.assertOneAtATime();
  });
});
