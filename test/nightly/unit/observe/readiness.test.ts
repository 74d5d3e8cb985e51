/** Ready only while whoever says who leads can be asked: a real Redis, etcd and PostgreSQL go away under running nodes, and come back. */

import assert from "node:assert/strict";
import { after, before, describe, it, type TestContext } from "node:test";
import type { BatonNode } from "../../../../src/node/baton-node.ts";
import { systemClock } from "../../../../src/platform/clock.ts";
import { QUICK } from "../../../support/cluster.ts";
import { EtcdServer } from "../../../support/etcd-server.ts";
import { atEnd } from "../../../support/node-cleanup.ts";
import { nodeHere } from "../../../support/node-here.ts";
import { PostgresServer } from "../../../support/postgres-server.ts";
import { eventually } from "../../../support/wait.ts";
import { RedisServer } from "../../../support/redis-server.ts";

type Checks = Awaited<ReturnType<BatonNode["services"]["health"]["ready"]>>["checks"];

interface Away {
  readonly settings: Readonly<Record<string, string>>;
  readonly name: string;
  go(): Promise<void>;
  back(): Promise<void>;
}

/** Of QUICK. A leader does not trust itself for longer, and nobody else is ready for longer. */
const LEASE_MS = 1_500;
/** A busy machine answers late. */
const SLACK_MS = 3_500;

async function checksWhen(node: BatonNode, holds: (ready: boolean, checks: Checks) => boolean) {
  return eventually("/readyz to say so", async () => {
    const { ready, checks } = await node.services.health.ready();
    return holds(ready, checks) ? checks : null;
  });
}

/** All nodes are ready; what they lean on goes away; none is, and each says why; it comes back, and all are again. */
async function outage(t: TestContext, url: string, away: Away): Promise<void> {
  const settings = { ...QUICK, STORE: url, ...away.settings };
  const ada = await nodeHere(t, { settings: { ...settings, NAME: "ada" } });
  const leads = (): boolean => ada.services.leadership.held() !== null;
  await eventually("ada to lead", async () => leads() || null);
  const bob = await nodeHere(t, { settings: { ...settings, NAME: "bob" } });
  const nodes = [ada, bob];
  for (const node of nodes) await checksWhen(node, (ready) => ready);

  await away.go();
  const since = systemClock.monotonic();
  for (const node of nodes) await checksWhen(node, (ready) => !ready);
  const tookMs = systemClock.monotonic() - since;
  t.diagnostic(`neither is ready ${tookMs.toFixed(0)} ms later`);
  assert.ok(tookMs < LEASE_MS + SLACK_MS, `${tookMs}`);
  for (const node of nodes) {
    const { coordination } = await checksWhen(node, (_, checks) => !checks["coordination"]!.ok);
    const reason = coordination!.reason!;
    assert.match(
      reason,
      new RegExp(`^${away.name}, which says who leads, has not answered this node for \\d+ s`),
    );
    assert.match(reason, /: start it, or mend the way to it; nothing has to be done here/);
    assert.doesNotMatch(reason, /127\.0\.0\.1|localhost|:\d{4,}/, "everybody may read it");
    assert.equal(node.services.health.problem, null, "a restart would not help");
  }
  await away.back();
  for (const node of nodes) await checksWhen(node, (ready) => ready);
}

describe("a leader and a standby are not ready", { timeout: 120_000 }, () => {
  let server: PostgresServer;
  before(async () => void (server = await PostgresServer.start()));
  after(() => server.stop());

  it("while Redis is away", async (t) => {
    const redis = await RedisServer.start();
    atEnd(t, () => redis.stop());
    await outage(t, await server.createDatabase(), {
      settings: { REDIS__URL: redis.url() },
      name: "Redis",
      go: () => redis.halt("kill"),
      back: () => redis.relaunch(),
    });
  });

  it("while etcd is away", async (t) => {
    const etcd = await EtcdServer.start();
    atEnd(t, () => etcd.stop());
    await outage(t, await server.createDatabase(), {
      settings: { ETCD__URL: etcd.url() },
      name: "etcd",
      go: () => etcd.halt(),
      back: () => etcd.relaunch(),
    });
  });

  // Last: it is the server of all of them.
  it("while PostgreSQL is away", async (t) => {
    await outage(t, await server.createDatabase(), {
      settings: {},
      name: "PostgreSQL",
      go: () => server.halt("immediate"),
      back: () => server.relaunch(),
    });
  });
});
