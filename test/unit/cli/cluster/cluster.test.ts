import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type Answer, clusterBody, fakeNode, JOB_ID, nodeBody } from "../fake-node.ts";
import { runCli, testClock } from "../run-cli.ts";
import { overview } from "../top/sample.ts";
import { column } from "../../../support/columns.ts";

const LEADER = {
  role: "scheduler",
  node_id: "node-1",
  epoch: 7,
  acquired_at: "2026-01-01T00:00:00.000Z",
  lease_until: "2026-01-01T01:00:05.000Z",
  valid: true,
};

const CLUSTER = clusterBody({ notes: ["behind a transaction pooler: the lease row alone is used"] });

describe("baton nodes list", () => {
  it("shows what nodes do and how busy they are", async () => {
    const other = nodeBody({ name: "node-2", status: "dead", url: null, roles: ["worker"] });
    await using node = await fakeNode({ "GET /cluster/nodes": { nodes: [nodeBody(), other] } });
    const { code, out } = await runCli(["nodes", "list", "--url", node.url]);
    assert.equal(code, 0);
    assert.deepEqual(out.split("\n"), [
      "NAME    STATUS  ROLES           JOBS  CPU  MEMORY  LAG    SEEN  VERSION  URL",
      "node-1  active  gateway,worker     3  26%     50%  1ms  2s ago  0.1.0    http://10.0.0.1:8420",
      "node-2  dead    worker             3  26%     50%  1ms  2s ago  0.1.0    -",
      "",
    ]);
    const json = await runCli(["nodes", "list", "-o", "json", "--url", node.url]);
    assert.deepEqual(JSON.parse(json.out), { nodes: [nodeBody(), other] });
  });
});

describe("baton leaders", () => {
  it("shows each role with its epoch and lease", async () => {
    const over = { ...LEADER, role: "log_compactor", valid: false };
    await using node = await fakeNode({ "GET /cluster/leaders": { leaders: [LEADER, over] } });
    const { out } = await runCli(["leaders", "--url", node.url]);
    assert.deepEqual(out.split("\n"), [
      "ROLE           NODE    EPOCH  SINCE   LEASE UNTIL               VALID",
      "scheduler      node-1  7      1h ago  2026-01-01T01:00:05.000Z  yes",
      "log_compactor  node-1  7      1h ago  2026-01-01T01:00:05.000Z  no",
      "",
    ]);
  });

  it("tells with --history who led before and why that ended, and what was refused", async () => {
    const term = { role: "scheduler", node_id: "node-2", reason: null };
    const terms = [
      { ...term, epoch: 8, started_at: "2026-01-01T00:30:00.000Z", ended_at: null },
      {
        ...term,
        epoch: 7,
        node_id: "node-1",
        started_at: "2026-01-01T00:00:00.000Z",
        ended_at: "2026-01-01T00:30:00.000Z",
        reason: "node-1 died",
      },
    ];
    const example = {
      at: "2026-01-01T00:31:00.000Z",
      node: "node-1",
      what: "a fire",
      carried_epoch: 7,
      current_epoch: 8,
      job_id: null,
    };
    await using node = await fakeNode({
      "GET /cluster/leaders/history": { terms, refused: { count: 12, examples: [example] }, partial: false },
    });
    const { code, out } = await runCli(["leader", "--history", "--role", "scheduler", "--url", node.url]);
    assert.equal(code, 0);
    assert.deepEqual(node.asked[0]!.query, { role: "scheduler", limit: "20" });
    assert.deepEqual(out.split("\n"), [
      "BEGAN                     ROLE       EPOCH  NODE    LED      ENDED BECAUSE",
      "2026-01-01T00:30:00.000Z  scheduler  8      node-2  leads    since 30m",
      "2026-01-01T00:00:00.000Z  scheduler  7      node-1  for 30m  node-1 died",
      "",
      "12 stale writes refused",
      "AT                        BY      WHAT    EPOCH  JOB",
      "2026-01-01T00:31:00.000Z  node-1  a fire  7 → 8",
      "",
    ]);
  });

  it("says that there is no leader", async () => {
    await using node = await fakeNode({ "GET /cluster/leaders": { leaders: [] } });
    assert.equal((await runCli(["leaders", "--url", node.url])).out, "no leader\n");
  });
});

describe("baton cluster status", () => {
  const routes = {
    "GET /cluster/overview": overview(),
    "GET /cluster": CLUSTER,
    "GET /cluster/leaders": { leaders: [LEADER] },
    "GET /cluster/nodes": { nodes: [nodeBody()] },
  };

  it("shows numbers, notes, leaders and nodes", async () => {
    await using node = await fakeNode(routes);
    const { code, out } = await runCli(["cluster", "status", "--url", node.url]);
    assert.equal(code, 0);
    assert.match(out, /^state +formed$/m);
    assert.match(out, /^nodes +2 \(1 active, 1 dead\)$/m);
    assert.match(out, /^leader +node-1$/m);
    assert.match(out, /^jobs +4 scheduled, 1,204 queued, .*; 12 of 30 slots in use$/m);
    assert.match(out, /^flow +in 120\/s, out 118\/s, failing 0\.2\/s; wait p50 3ms, p95 21ms; run /m);
    assert.match(out, /^waiting +1,204 jobs, the oldest for 3\.4s$/m);
    assert.match(out, /^Alerts\n {2}warning node-c has been silent.*\n {4}→ start it again/m);
    assert.match(out, /^Notes\n {2}- behind a transaction pooler: the lease row alone is used$/m);
    assert.match(out, /^Leaders\nROLE.*\nscheduler/m);
    assert.match(out, /^Nodes\nNAME.*\nnode-1/m);
  });

  it("says how many nodes a cluster that forms still waits for", async () => {
    const forming = {
      ...CLUSTER,
      joining_nodes: 1,
      formed: false,
      minimum_nodes: 3,
      scheduler_leader: null,
      notes: [],
    };
    await using node = await fakeNode({ ...routes, "GET /cluster": forming });
    const { out } = await runCli(["cluster", "status", "--url", node.url]);
    assert.match(out, /^state +forming: 2 of at least 3 nodes have gathered$/m);
    assert.match(out, /^leader +none$/m);
    assert.doesNotMatch(out, /Notes/);
  });

  it("gives programs all of it", async () => {
    await using node = await fakeNode(routes);
    const { out } = await runCli(["cluster", "status", "-o", "json", "--url", node.url]);
    assert.deepEqual(JSON.parse(out), {
      overview: overview(),
      cluster: CLUSTER,
      leaders: [LEADER],
      nodes: [nodeBody()],
    });
  });
});

/** A node that goes through these states, one for each look, and stays in the last. */
function steps(...states: readonly Answer[]): () => Answer {
  let next = 0;
  return () => states[Math.min(next++, states.length - 1)]!;
}

function seen(status: string, jobs: number, second: number): Answer {
  const last_seen = `2026-01-01T00:00:0${second}.000Z`;
  const load = { jobs, connections: 0, cpu: 0, memory: 0, loop_lag_ms: 0 };
  return { body: nodeBody({ name: "node-2", status, last_seen, load }) };
}

const DRAIN = "POST /cluster/nodes/node-2/drain";
const LOOK = "GET /cluster/nodes/node-2";
const asked = () => ({ status: 202, body: { name: "node-2", asked: "drain" } });
const gone = { status: 404, body: { error: "NOT_FOUND", message: "there is no node node-2" } };

describe("baton node drain", () => {
  it("tells what still runs until nothing does", async () => {
    const look = steps(
      seen("active", 3, 1),
      seen("draining", 3, 1),
      seen("draining", 1, 2),
      seen("draining", 0, 3),
    );
    await using node = await fakeNode({ [DRAIN]: asked, [LOOK]: look });
    const { code, out, err } = await runCli(["node", "drain", "node-2", "--url", node.url]);
    assert.equal(code, 0, err);
    assert.equal(out, "node-2 is drained: nothing runs there\n");
    assert.deepEqual(err.trimEnd().split("\n"), [
      "node-2 was asked to drain and is active",
      "node-2 is draining, 3 jobs run",
      "node-2 is draining, 1 job runs",
    ]);
  });

  it("does not take a count from before the drain for the end of it", async () => {
    const look = steps(
      seen("draining", 0, 1),
      seen("draining", 0, 1),
      seen("draining", 2, 2),
      seen("draining", 0, 3),
    );
    await using node = await fakeNode({ [DRAIN]: asked, [LOOK]: look });
    const { out } = await runCli(["node", "drain", "node-2", "-o", "json", "--url", node.url]);
    assert.equal(JSON.parse(out).last_seen, "2026-01-01T00:00:03.000Z");
  });

  const handing = (waiting: number, over: number, orphaned = 0, released = 0): object => ({
    drain: { owned: 5, handed_over: over, finished: 0, waiting, orphaned, released },
  });
  const owner = (second: number, drain: object): Answer => {
    const { body } = seen("draining", 0, second);
    return { body: { ...(body as object), ...drain } };
  };

  it("tells with --watch what was handed over, and waits for the rest", async () => {
    const look = steps(owner(1, handing(5, 0)), owner(2, handing(2, 3)), owner(3, handing(0, 5)));
    await using node = await fakeNode({ [DRAIN]: asked, [LOOK]: look });
    const { code, out, err } = await runCli(["node", "drain", "node-2", "--watch", "--url", node.url]);
    assert.equal(code, 0, err);
    assert.equal(
      out,
      "node-2 is drained: nothing runs there; 5 of 5 owned jobs handed over, 0 waiting, 0 orphaned\n",
    );
    assert.deepEqual(err.trimEnd().split("\n"), [
      "node-2 is draining, no jobs run; 0 of 5 owned jobs handed over, 5 waiting, 0 orphaned",
      "node-2 is draining, no jobs run; 3 of 5 owned jobs handed over, 2 waiting, 0 orphaned",
    ]);
  });

  it("exits with 6 when jobs were left without an owner", async () => {
    const look = steps(owner(1, handing(5, 0)), owner(2, handing(0, 2, 1, 2)));
    await using node = await fakeNode({ [DRAIN]: asked, [LOOK]: look });
    const { code, out, err } = await runCli(["node", "drain", "node-2", "--url", node.url]);
    assert.equal(code, 6);
    assert.match(out, /2 of 5 owned jobs handed over, 0 waiting, 1 orphaned, 2 released/);
    assert.match(err, /^error: 3 jobs of node-2 found no other owner in time$/m);
  });

  it("only asks with --no-wait", async () => {
    await using node = await fakeNode({ [DRAIN]: asked });
    const { code, out } = await runCli(["node", "drain", "node-2", "--no-wait", "--url", node.url]);
    assert.deepEqual([code, out], [0, "node-2 was asked to drain\n"]);
    assert.equal(node.asked.length, 1);
  });

  it("is done when the node has left", async () => {
    const look = steps(seen("draining", 1, 1), gone);
    await using node = await fakeNode({ [DRAIN]: asked, [LOOK]: look });
    const { code, out } = await runCli(["node", "drain", "node-2", "--wait", "--url", node.url]);
    assert.deepEqual([code, out], [0, "node-2 has been stopped\n"]);
  });

  it("fails when the node dies or is resumed by somebody else", async () => {
    for (const [last, message] of [
      [seen("dead", 1, 2), "error: node-2 died before it was drained"],
      [seen("active", 1, 2), "error: node-2 is active again: somebody has resumed it"],
    ] as const) {
      await using node = await fakeNode({ [DRAIN]: asked, [LOOK]: steps(seen("draining", 1, 1), last) });
      const { code, out, err } = await runCli(["node", "drain", "node-2", "--url", node.url]);
      assert.deepEqual([code, out], [1, ""]);
      assert.ok(err.includes(message), err);
    }
  });

  it("gives up after --timeout, and says what still runs", async () => {
    await using node = await fakeNode({ [DRAIN]: asked, [LOOK]: steps(seen("draining", 2, 1)) });
    let now = 0;
    const clock = { ...testClock, monotonic: () => (now += 600) };
    const { code, err } = await runCli(["node", "drain", "node-2", "--timeout", "2s", "--url", node.url], {
      clock,
    });
    assert.equal(code, 124);
    assert.match(err, /^error: node-2 is not drained after 2s: 2 jobs run$/m);
  });
});

describe("baton node show", () => {
  it("tells what the node is and whom it reaches", async () => {
    const reach = [
      { node: "node-2", ok: true, latency_ms: 3, reason: null },
      { node: "node-3", ok: false, latency_ms: null, reason: "no route" },
    ];
    await using node = await fakeNode({ "GET /cluster/nodes/node-1": nodeBody({ reach, drain: null }) });
    const { code, out } = await runCli(["node", "show", "node-1", "--url", node.url]);
    assert.equal(code, 0);
    assert.match(out, /^load +cpu 26%, memory 50%, loop lag 1ms$/m);
    assert.match(out, /^reaches node-2 +in 3ms$/m);
    assert.match(out, /^reaches node-3 +no: no route$/m);
  });
});

describe("baton node resume", () => {
  it("asks the node to work again", async () => {
    await using node = await fakeNode({
      "POST /cluster/nodes/node-2/resume": () => ({ status: 202, body: { name: "node-2", asked: "resume" } }),
    });
    const { code, out } = await runCli(["node", "resume", "node-2", "--url", node.url]);
    assert.deepEqual([code, out], [0, "node-2 was asked to take work again\n"]);
  });
});

describe("baton node remove", () => {
  const REMOVE = "DELETE /cluster/nodes/node-2";

  it("takes the node out", async () => {
    await using node = await fakeNode({ [REMOVE]: { name: "node-2", removed: true } });
    const { code, out } = await runCli(["node", "remove", "node-2", "--url", node.url]);
    assert.deepEqual([code, out], [0, "node-2 is no longer in the cluster\n"]);
  });

  it("ends with 3 for a name that nobody has, and with 4 where nodes are not removed", async () => {
    for (const [status, error, exit] of [
      [404, "NOT_FOUND", 3],
      [400, "BAD_REQUEST", 4],
      [409, "NOT_LEADER", 4],
    ] as const) {
      await using node = await fakeNode({ [REMOVE]: () => ({ status, body: { error, message: "no" } }) });
      const { code, err } = await runCli(["node", "remove", "node-2", "--url", node.url]);
      assert.deepEqual([code, err], [exit, `error: no (${error})\n`]);
    }
  });
});

describe("baton call", () => {
  const CALL = "POST /functions/hello";

  it("prints the result and nothing else", async () => {
    await using node = await fakeNode({ [CALL]: { job_id: JOB_ID, result: { hello: "Ada" } } });
    const args = ["call", "hello", '{"name":"Ada"}', "--url", node.url];
    const { code, out, err } = await runCli(args);
    assert.deepEqual([code, JSON.parse(out), err], [0, { hello: "Ada" }, ""]);
    assert.deepEqual(node.asked[0]!.body, { name: "Ada" });
    assert.equal(node.asked[0]!.query["timeout_ms"], "30000");
    assert.equal((await runCli([...args, "-o", "yaml", "--timeout", "2s"])).out, "hello: Ada\n");
    assert.equal(node.asked[1]!.query["timeout_ms"], "2000");
  });

  it("reads the payload from stdin, and sends null for none", async () => {
    await using node = await fakeNode({ [CALL]: { job_id: JOB_ID, result: null } });
    await runCli(["call", "hello", "--payload-file", "-", "--url", node.url], { input: "[1]" });
    await runCli(["call", "hello", "--url", node.url]);
    assert.deepEqual(column(node.asked, "body"), [[1], null]);
  });

  it("exits with 1 when the task failed, and tells where its log is", async () => {
    const body = { error: "FUNCTION_FAILED", message: "hello failed: it broke", job_id: JOB_ID };
    await using node = await fakeNode({ [CALL]: () => ({ status: 422, body }) });
    const { code, out, err } = await runCli(["call", "hello", "--url", node.url]);
    assert.deepEqual([code, out], [1, ""]);
    assert.equal(err, `error: hello failed: it broke\nhint: baton jobs logs ${JOB_ID}\n`);
  });

  it("exits with 124 when it takes longer, and tells how to go on waiting", async () => {
    await using node = await fakeNode({
      [CALL]: () => ({ status: 202, body: { job_id: JOB_ID, status: "processing" } }),
    });
    const { code, err } = await runCli(["call", "hello", "--timeout", "100ms", "--url", node.url]);
    assert.equal(code, 124);
    assert.match(err, new RegExp(`^hint: wait for it with: baton jobs logs -f ${JOB_ID}$`, "m"));
  });
});

describe("baton events", () => {
  it("shows the last entries of the journal and ends, without -f", async () => {
    const entry = { node: "node-1", kind: "node.joined", subject: "node-2", detail: {} };
    const entries = [
      { ...entry, id: 2, at: "2026-01-01T00:00:02.000Z" },
      { ...entry, id: 1, at: "2026-01-01T00:00:01.000Z", subject: "node-1" },
    ];
    const journal = { entries, next_cursor: null, partial: false };
    await using node = await fakeNode({
      "GET /health": { status: "ok" },
      "GET /cluster/journal": journal,
    });
    const { code, out, err } = await runCli(["events", "--last", "2", "--url", node.url]);
    assert.equal(code, 0, err);
    assert.deepEqual(
      out.split("\n").map((line) => line.slice(0, 41).trim()),
      ["2026-01-01T00:00:01.000Z node.joined", "2026-01-01T00:00:02.000Z node.joined", ""],
    );
  });
});
