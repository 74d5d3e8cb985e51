import assert from "node:assert/strict";
import { after, before, beforeEach, describe, it } from "node:test";
import type { FastifyInstance } from "fastify";
import { OverviewBody } from "../../../src/api/overview.ts";
import { peerApps, type PeerApp, type PeerApps } from "../../support/peer-apps.ts";
import { appOf, FakeNode, NO_LOOK, suiteApp } from "../../unit/http/fake-node.ts";
import { columns } from "../../support/columns.ts";

const LOAD = { jobs: 1, connections: 0, cpu: 0, memory: 0, loopLagMs: 0, slots: 4 };
const QUANTILES = { p50: 10, p95: 20, p99: 30 };

async function get(app: Pick<FastifyInstance, "inject">): Promise<OverviewBody> {
  const answer = await app.inject({ method: "GET", url: "/cluster/overview" });
  assert.equal(answer.statusCode, 200, answer.body);
  return OverviewBody.parse(answer.json());
}

describe("the overview", () => {
  const node = new FakeNode();
  const app = suiteApp(node);
  beforeEach(() => node.clock.advance(2_000));

  it("says all at a glance", async () => {
    const now = node.clock.now();
    node.guarantees = { ...node.guarantees, shared: true };
    const traffic = { submitted: 5, finished: 4, failed: 1, queues: [], others: false };
    node.join("node-b", { load: { ...LOAD, traffic } });
    node.join("node-c", {
      load: { ...LOAD, traffic },
      status: "dead",
      alive: false,
      lastSeenAt: now - 60_000,
    });
    node.look = {
      ...NO_LOOK,
      countedAt: now,
      jobs: { ...NO_LOOK.jobs, queued: 7, failed: 2 },
      waiting: [{ queue: "default", since: now - 1_500, paused: false }],
      times: { wait: QUANTILES, run: QUANTILES, of: 12, failed: 3 },
    };
    const body = await get(app);
    assert.equal(body.node, "node-a");
    assert.deepEqual([body.partial, body.unreachable], [false, []]);
    assert.deepEqual([body.cluster.total_nodes, body.cluster.dead_nodes, body.cluster.store], [3, 1, "fake"]);
    assert.deepEqual(body.leader, {
      node_id: "node-a",
      epoch: 7,
      acquired_at: new Date(now - 60_000).toISOString(),
      lease_until: new Date(now + 1).toISOString(),
    });
    assert.deepEqual(
      [body.jobs.queued, body.jobs.failed, body.counted_at],
      [7, 2, new Date(now).toISOString()],
    );
    assert.deepEqual(body.rates, { submitted_per_second: 5, finished_per_second: 4, failed_per_second: 1 });
    assert.deepEqual(body.times, { wait_ms: QUANTILES, run_ms: QUANTILES, of: 12 });
    assert.deepEqual(body.backlog, { ready: 7, oldest_age_ms: 1_500 });
    assert.deepEqual(body.workers, { slots: 4, running: 3 });
    assert.deepEqual(columns(body.alerts, "code", "subject", "since"), [
      ["node_dead", "node-c", new Date(now - 60_000).toISOString()],
      ["failures_rising", null, new Date(now).toISOString()],
    ]);
  });

  it("is looked up once a second for everybody", async () => {
    await Promise.all(Array.from({ length: 20 }, () => get(app)));
    assert.equal(node.looks, 1);
    await node.clock.advance(1_000);
    await get(app);
    assert.equal(node.looks, 2);
  });

  it("is told also while the store is away, with what is wrong", async () => {
    node.look = { ...NO_LOOK, trouble: "the database is gone" };
    const { alerts, counted_at } = await get(app);
    assert.equal(counted_at, null);
    assert.deepEqual(columns(alerts, "code", "severity"), [["store_degraded", "critical"]]);
  });
});

describe("the overview, live", () => {
  it("comes at once, then when something has changed, with the entries of the journal", async () => {
    const node = new FakeNode();
    Object.assign(node.cluster, { leaders: async () => [] });
    node.journal.note({ kind: "node.joined", subject: "long ago" });
    const stop = new AbortController();
    const events: [string, unknown][] = [];
    const reading = (async () => {
      for await (const { event, data } of node.live.follow(stop.signal)) {
        const subject = event === "journal" ? (data as { subject: string }).subject : null;
        events.push([event, subject ?? (data as OverviewBody).jobs.queued]);
      }
    })();
    await node.clock.advance(0);
    await node.clock.advance(3_000);
    assert.deepEqual(events.slice(0, 1), [["overview", 0]]);
    const quiet = events.length;
    await node.clock.advance(5_000);
    assert.equal(events.length, quiet, "nothing has changed");
    node.look = { ...NO_LOOK, jobs: { ...NO_LOOK.jobs, queued: 3 } };
    node.journal.note({ kind: "node.dead", subject: "node-b" });
    node.journal.note({ kind: "node.left", subject: "node-c" });
    await node.clock.advance(2_000);
    assert.deepEqual(events.slice(quiet), [
      ["journal", "node-b"],
      ["journal", "node-c"],
      ["overview", 3],
    ]);
    stop.abort();
    await reading;
  });

  it("costs one look a second however many read, and none when nobody does", async () => {
    const node = new FakeNode();
    const stop = new AbortController();
    const readers = Array.from({ length: 10 }, async () => {
      for await (const _ of node.live.follow(stop.signal)) continue;
    });
    await node.clock.advance(0);
    await node.clock.advance(10_000);
    assert.ok(node.looks >= 9 && node.looks <= 12, `${node.looks} looks in 10 s`);
    stop.abort();
    await Promise.all(readers);
    const looks = node.looks;
    await node.clock.advance(60_000);
    assert.equal(node.looks, looks);
  });
});

describe("the overview of peers", () => {
  let peers: PeerApps;
  before(async () => {
    peers = await peerApps({ names: ["node-a", "node-b", "node-c"], way: "memory" });
  });
  after(() => peers[Symbol.asyncDispose]());

  it("is the sum of what each has, and tells who is missing", async () => {
    const nodes = peers.nodes as readonly [PeerApp, PeerApp, PeerApp];
    const now = Date.now();
    for (const [at, { node, name }] of nodes.entries()) {
      const traffic = { submitted: 1.5, finished: 1, failed: 0, queues: [], others: false };
      peers.see(name, { load: { ...LOAD, traffic } });
      node.look = {
        ...NO_LOOK,
        countedAt: now,
        jobs: { ...NO_LOOK.jobs, queued: at + 1 },
        waiting: [{ queue: `q${at}`, since: now - 600_000 * (at + 1), paused: false }],
        times: { wait: QUANTILES, run: null, of: 10, failed: 0 },
      };
    }
    const body = await get(nodes[1].app);
    assert.deepEqual([body.node, body.partial], ["node-b", false]);
    assert.deepEqual([body.jobs.queued, body.backlog.ready], [6, 6]);
    assert.ok(body.backlog.oldest_age_ms! >= 1_800_000);
    assert.deepEqual(body.rates.submitted_per_second, 4.5);
    assert.deepEqual(body.workers, { slots: 12, running: 3 });
    assert.deepEqual(body.times, { wait_ms: QUANTILES, run_ms: null, of: 30 });
    assert.deepEqual(new Set(body.alerts.map(({ subject }) => subject)), new Set(["q0", "q1", "q2"]));
    peers.see("node-c", { alive: false });
    const { partial, unreachable, jobs } = await get(nodes[0].app);
    assert.deepEqual([partial, unreachable, jobs.queued], [true, ["node-c"], 3]);
  });
});

describe("the settings of a node", () => {
  it("are told with their sources", async () => {
    const node = new FakeNode();
    const app = await appOf(node);
    const answer = await app.inject({ method: "GET", url: "/node/settings" });
    assert.deepEqual(answer.json(), {
      node: "node-a",
      settings: [{ path: "http.port", value: 8420, source: "default", is_default: true }],
    });
    await app.close();
  });
});
