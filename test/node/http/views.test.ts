import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { atEnd } from "../../support/node-cleanup.ts";
import { peerApps } from "../../support/peer-apps.ts";
import type { PeerApp, PeerApps, PeerAppsOptions } from "../../support/peer-apps.ts";
import { column, columns } from "../../support/columns.ts";

async function three(t: TestContext, options: Partial<PeerAppsOptions> = {}) {
  const cluster = await peerApps({ names: ["node-a", "node-b", "node-c"], way: "memory", ...options });
  atEnd(t, () => cluster[Symbol.asyncDispose]());
  return { cluster, nodes: cluster.nodes as readonly [PeerApp, PeerApp, PeerApp] };
}

async function ask(at: PeerApp, url: string, method: "GET" | "POST" = "GET") {
  const answer = await at.app.inject({ method, url });
  return { status: answer.statusCode, body: answer.json() };
}

const ids = (body: { items: { job_id: string }[] }): string[] => body.items.map(({ job_id }) => job_id);

/** One job after the other, so that their order is known. */
async function fill(cluster: PeerApps, count: number): Promise<string[]> {
  const made: string[] = [];
  for (let i = 0; i < count; i++) {
    const { node } = cluster.nodes[(i * 7) % cluster.nodes.length]!;
    for (const each of cluster.nodes) await each.node.clock.advance(1);
    made.unshift(node.add());
  }
  return made;
}

describe("the jobs of one node", () => {
  it("are its own alone, by status and since when", async (t) => {
    const { nodes } = await three(t);
    const [a, b] = nodes;
    const old = a.node.add("failed");
    await a.node.clock.advance(1_000);
    const young = a.node.add();
    b.node.add();
    const { body } = await ask(a, "/admin/jobs");
    assert.deepEqual([body.server, body.job_count], ["node-a", 2]);
    assert.deepEqual(column(body.jobs as any[], "job_id"), [young, old]);
    const failed = await ask(a, "/admin/jobs?status=failed");
    assert.deepEqual([failed.body.jobs.length, failed.body.job_count], [1, 1]);
    const since = new Date(a.node.clock.now()).toISOString();
    assert.equal((await ask(a, `/admin/jobs?since=${since}`)).body.jobs[0].job_id, young);
    assert.equal((await ask(a, "/admin/jobs?since=yesterday")).status, 400);
    assert.equal((await ask(a, "/admin/jobs?status=dancing")).status, 400);
  });
});

describe("the jobs of all nodes", () => {
  it("are one list, newest first, with what each node has", async (t) => {
    const { cluster, nodes } = await three(t);
    const made = await fill(cluster, 7);
    const { status, body } = await ask(nodes[1], "/cluster/jobs");
    assert.equal(status, 200);
    assert.deepEqual(ids(body), made);
    assert.deepEqual(body.nodes, [
      { name: "node-a", reachable: true, job_count: 3 },
      { name: "node-b", reachable: true, job_count: 2 },
      { name: "node-c", reachable: true, job_count: 2 },
    ]);
    assert.deepEqual([body.partial, body.next_cursor], [false, null]);
  });

  it("are cut after they were put together, and counted before", async (t) => {
    const { cluster, nodes } = await three(t);
    const made = await fill(cluster, 9);
    const { body } = await ask(nodes[0], "/cluster/jobs?limit=2");
    assert.deepEqual(ids(body), made.slice(0, 2));
    assert.deepEqual(column(body.nodes as any[], "job_count"), [3, 3, 3]);
  });

  it("are at /jobs too", async (t) => {
    const { cluster, nodes } = await three(t);
    await fill(cluster, 2);
    const [here, there] = await Promise.all(
      ["/jobs", "/cluster/jobs"].map((path) => ask(nodes[0], `${path}?limit=5`)),
    );
    assert.equal(here!.status, 200);
    assert.deepEqual(here!.body, there!.body);
  });

  it("are filtered by every node", async (t) => {
    const { cluster, nodes } = await three(t);
    await fill(cluster, 6);
    const failed = nodes.map(({ node }) => node.add("failed"));
    const { body } = await ask(nodes[0], "/cluster/jobs?status=failed");
    assert.deepEqual(ids(body).sort(), failed.sort());
    assert.equal((await ask(nodes[0], "/cluster/jobs?since=never")).status, 400);
  });

  it("are read page by page to the end, each once, also while new ones come", async (t) => {
    const { cluster, nodes } = await three(t);
    const made = await fill(cluster, 40);
    for (const limit of [1, 3, 7, 100]) {
      const read: string[] = [];
      let cursor: string | null = "";
      for (let pages = 0; cursor !== null; pages++) {
        assert.ok(pages < 200, "it has an end");
        const { status, body } = await ask(
          nodes[pages % 3]!,
          `/cluster/jobs?limit=${limit}${cursor && `&cursor=${cursor}`}`,
        );
        assert.equal(status, 200);
        read.push(...ids(body));
        cursor = body.next_cursor;
        assert.ok((cursor ?? "").length <= 3 * 30, `short enough to copy: ${cursor}`);
        if (pages === 1) made.unshift(...(await fill(cluster, 1)));
      }
      const known = new Set(read);
      assert.equal(known.size, read.length, `each once, ${limit} at a time`);
      const before = made.slice(-40);
      assert.deepEqual(
        read.filter((id) => before.includes(id)),
        before,
        `${limit} at a time`,
      );
    }
    for (const cursor of ["x", ":1", "node-a:x", "node-a:1.2", "node-a:1,", "node-a:1.2.3,x"]) {
      const { status, body } = await ask(nodes[0], `/cluster/jobs?cursor=${cursor}`);
      assert.deepEqual([status, body.field], [400, "cursor"], cursor);
    }
  });

  it("S94: are those of who answers in time, and it is said who does not", async (t) => {
    let asked = 0;
    const { cluster, nodes } = await three(t, {
      others: [{ name: "node-d", url: "http://node-d:8420" }],
      meddle: (name, handle) =>
        name !== "node-c"
          ? handle
          : () => {
              asked++;
              return new Promise(() => {});
            },
    });
    const mine = nodes[0].node.add();
    const theirs = nodes[1].node.add();
    const { status, body } = await ask(nodes[0], "/cluster/jobs");
    assert.equal(status, 200);
    assert.deepEqual(ids(body).sort(), [mine, theirs].sort());
    assert.equal(body.partial, true);
    assert.deepEqual(body.nodes.slice(2), [
      { name: "node-c", reachable: false, job_count: 0 },
      { name: "node-d", reachable: false, job_count: 0 },
    ]);
    cluster.see("node-c", { alive: false });
    const askedBefore = asked;
    assert.equal((await ask(nodes[0], "/cluster/jobs")).body.partial, true);
    assert.equal(asked, askedBefore, "a node that is known to be away is not asked");
  });

  it("are not taken from a node that answers nonsense", async (t) => {
    const { nodes } = await three(t, {
      meddle: (name, handle) =>
        name === "node-b"
          ? async () => ({ status: 200, body: "<html>" })
          : name === "node-c"
            ? async () => ({ status: 500, body: "{}" })
            : handle,
    });
    const { body } = await ask(nodes[0], "/cluster/jobs");
    assert.deepEqual(column(body.nodes as any[], "reachable"), [true, false, false]);
  });
});

describe("a queue of all nodes", () => {
  it("has the jobs of all of them", async (t) => {
    const { nodes } = await three(t);
    for (const { node } of nodes) node.add();
    nodes[1].node.add("failed");
    const { body } = await ask(nodes[2], "/queues");
    assert.equal(body.queues.length, 1);
    assert.deepEqual([body.queues[0].counts.queued, body.queues[0].counts.failed], [3, 1]);
    assert.equal(body.partial, false);
  });

  it("is paused through any node, and the answer says which nodes are away", async (t) => {
    const { cluster, nodes } = await three(t);
    for (const { node } of nodes) node.add();
    cluster.see("node-c", { alive: false });
    const { status, body } = await ask(nodes[0], "/queues/default/pause", "POST");
    assert.equal(status, 200);
    assert.deepEqual(body, {
      name: "default",
      paused: true,
      nodes: [
        { name: "node-a", reachable: true },
        { name: "node-b", reachable: true },
        { name: "node-c", reachable: false },
      ],
    });
  });
});

describe("the nodes", () => {
  it("are all there, up or down", async (t) => {
    const { cluster, nodes } = await three(t);
    cluster.see("node-c", { alive: false, status: "dead" });
    const { body } = await ask(nodes[0], "/cluster/nodes");
    assert.deepEqual(columns(body.nodes as any[], "name", "alive", "status"), [
      ["node-a", true, "active"],
      ["node-b", true, "active"],
      ["node-c", false, "dead"],
    ]);
    for (const node of body.nodes) assert.ok(Date.parse(node.last_seen) > 0);
    assert.deepEqual((await ask(nodes[0], "/health")).body, { status: "ok", node: "node-a" });
  });
});

describe("who placed what where", () => {
  it("is counted by each node, and added up for all", async (t) => {
    const { cluster, nodes } = await three(t, { strategy: "per-node" });
    for (let i = 0; i < 6; i++) {
      await nodes[0].app.inject({ method: "POST", url: "/jobs", payload: { task: "hello" } });
      await nodes[1].app.inject({ method: "POST", url: "/jobs", payload: { task: "hello" } });
    }
    const { body } = await ask(nodes[0], "/cluster/local-metrics");
    assert.deepEqual(body.jobs_submitted, { "node-a,node-a": 2, "node-a,node-b": 2, "node-a,node-c": 2 });
    assert.deepEqual([body.jobs_owned, body.node_up["node-c"]], [{ "node-a": 4 }, 1]);
    const summary = await ask(nodes[2], "/cluster/metrics-summary");
    for (const row of summary.body.nodes) {
      assert.deepEqual([row.up, row.jobs_owned_total, row.jobs_submitted_as_target], [true, 4, 4], row.name);
    }
    await nodes[1].kill();
    cluster.see("node-b", { alive: false });
    const [a, b] = (await ask(nodes[0], "/cluster/metrics-summary")).body.nodes;
    assert.deepEqual([a.up, a.jobs_submitted_as_target], [true, 2]);
    assert.deepEqual([b.up, b.jobs_owned_total], [false, 0]);
  });
});
