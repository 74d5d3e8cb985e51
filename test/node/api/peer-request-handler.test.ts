import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Operation } from "../../../src/api/operation.ts";
import { OPERATIONS } from "../../../src/api/operation-table.ts";
import { writePrincipal } from "../../../src/core/access/permissions.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import type { PeerReply, ReceivedRequest } from "../../../src/transport/transport.ts";
import { peerApps } from "../../support/peer-apps.ts";
import type { PeerApp } from "../../support/peer-apps.ts";

const ID = "node-a-0198c0de-0000-7000-8000-000000000000";
const ROWS: readonly Operation[] = OPERATIONS;

function send(at: PeerApp, method: ReceivedRequest["method"], path: string, body = "", headers = {}) {
  return at.requests.handle({ from: "node-b", method, path, headers, body });
}

async function one(clock = new ManualClock()) {
  const cluster = await peerApps({ names: ["node-a", "node-b"], way: "memory", clock, strategy: "local" });
  return { cluster, a: cluster.nodes[0]!, clock };
}

const bodyOf = (reply: PeerReply) => JSON.parse(reply.body!);

describe("a request of another node", () => {
  it("lets in whom the calling node speaks for, by the same permissions as over HTTP", async () => {
    const { cluster, a } = await one();
    await using _ = cluster;
    for (const permission of ["read", "submit", "operate"] as const) {
      const headers = {
        "x-baton-principal": writePrincipal({ kind: "token", name: "ci", permission, id: "1" }),
      };
      const { status } = await send(a, "POST", "/queues/mail/pause?internal=1", "{broken", headers);
      assert.equal(status, permission === "operate" ? 400 : 403, permission);
    }
    for (const forged of ["", "admin", "root token ci", "admin token ci\nx"]) {
      const reply = await send(a, "GET", "/status?internal=1", "", { "x-baton-principal": forged });
      assert.deepEqual([reply.status, bodyOf(reply).error], [403, "FORBIDDEN"], forged);
    }
    const own = await send(a, "GET", "/session?internal=1");
    assert.equal(bodyOf(own).principal, "node:node-b", "a node that speaks for nobody speaks for itself");
  });

  it("answers every operation as the HTTP route does, body for body and header for header", async () => {
    const { cluster, a } = await one();
    await using _ = cluster;
    const id = a.node.add("failed");
    a.node.log(id, "a line");
    const bodies: Readonly<Record<string, object>> = {
      submit_jobs: { task: "picky" },
      post_schedule: { name: "tick", task: "hello", every_ms: 60_000 },
      put_schedule: { task: "hello", every_ms: 60_000 },
      preview_timing: { every_ms: 60_000, count: 2 },
    };
    const kept = structuredClone(a.node.kept.get(id)!);
    const anew = async (): Promise<void> => {
      for (const { name } of await a.node.schedules.list()) await a.node.schedules.remove(name);
      a.node.kept.set(id, structuredClone(kept));
    };
    // Each call of a function makes a job with an id of its own; who may remove a node is another matter.
    // And a node that is asked by another answers of itself alone, where a caller gets the whole.
    const others = new Set([
      "call_function",
      "remove_node",
      "who_am_i",
      "get_overview",
      "get_scaling",
      "follow_cluster",
      "get_journal",
      "list_queues",
      "pause_queue",
      "resume_queue",
      "list_cluster_jobs",
      "list_all_jobs",
      "get_metrics_summary",
    ]);
    for (const row of ROWS.filter(({ name }) => !others.has(name))) {
      const path = row.path.replace("{id}", id).replace("{name}", "node-a").replace("{task}", "hello");
      const payload = bodies[row.name];
      const headers = { "x-request-id": "r" };
      await anew();
      const direct = await a.app.inject({ method: row.method, url: path, payload, headers });
      await anew();
      const text = payload === undefined ? "" : JSON.stringify(payload);
      const reply = await send(a, row.method, `${path}?internal=1`, text, headers);
      assert.equal(reply.status, direct.statusCode, row.name);
      assert.equal(reply.body, direct.body, row.name);
      for (const name of ["content-type", "x-request-id", "x-baton-node", "x-baton-role", "x-baton-epoch"]) {
        assert.equal(reply.headers![name], String(direct.headers[name]), `${row.name}: ${name}`);
      }
      assert.equal(reply.headers!["retry-after"], direct.headers["retry-after"], row.name);
    }
  });

  it("judges what it gets by the same rules", async () => {
    const { cluster, a } = await one();
    await using _ = cluster;
    const cases: [ReceivedRequest["method"], string, string, number, string][] = [
      ["POST", "/jobs?internal=1", "{", 400, "BAD_JSON"],
      ["GET", "/jobs/nonsense", "", 400, "BAD_ID"],
      ["GET", `/jobs/${ID}`, "", 404, "NOT_FOUND"],
      ["GET", "/admin/jobs?limit=0", "", 400, "BAD_REQUEST"],
      ["GET", "/nowhere", "", 404, "NOT_FOUND"],
      ["GET", "/peer/nothing", "", 404, "NOT_FOUND"],
    ];
    for (const [method, path, body, status, code] of cases) {
      const reply = await send(a, method, path, body);
      assert.deepEqual(
        [reply.status, bodyOf(reply).error],
        [status, code],
        `${method} ${path} ${body.slice(0, 30)}`,
      );
    }
    assert.equal((await send(a, "GET", "/admin/jobs?limit=5&internal=1")).status, 200);
    assert.equal(a.log.lines.length, 0, "refusals are no faults");
  });

  it("takes nothing in while the node drains, and lets out what is inside", async () => {
    const { cluster, a } = await one();
    await using _ = cluster;
    const { promise, resolve } = Promise.withResolvers<void>();
    a.node.hold = promise;
    const inside = send(a, "POST", "/jobs?internal=1", '{"task":"hello"}');
    while (a.node.submits === 0) await new Promise((turn) => setImmediate(turn));
    assert.equal(a.inFlight.count, 1);
    a.inFlight.close();
    const late = await send(a, "POST", "/jobs?internal=1", '{"task":"hello"}');
    assert.deepEqual([late.status, bodyOf(late).error, late.headers!["retry-after"]], [503, "DRAINING", "1"]);
    resolve();
    assert.equal((await inside).status, 200);
    assert.equal(a.inFlight.count, 0);
  });

  it("serves nodes also where callers are not served: a worker has no other way to be asked", async () => {
    const { cluster, a } = await one();
    await using _ = cluster;
    a.node.roles = new Set(["worker"] as const);
    const id = a.node.add();
    assert.equal((await a.app.inject(`/jobs/${id}`)).statusCode, 421);
    assert.equal((await send(a, "GET", `/jobs/${id}`)).status, 200);
  });

  it("does not store what nobody waits for any more", async () => {
    const { cluster, a, clock } = await one();
    await using _ = cluster;
    const sent = (tookMs: number) =>
      send(a, "POST", `/jobs?internal=1&internal_sent=${clock.now() - tookMs}`, '{"task":"hello"}', {
        "x-baton-deadline-ms": "2000",
      });
    assert.equal((await sent(1)).status, 200);
    assert.equal((await sent(1_500)).status, 200);
    const late = await sent(2_500);
    assert.deepEqual([late.status, bodyOf(late).error], [504, "DEADLINE"]);
    assert.equal(a.node.kept.size, 2);
  });

  it("gives events as they happen, with signs of life between them, until their reader leaves", async () => {
    const { cluster, a, clock } = await one();
    await using _ = cluster;
    const id = a.node.add("processing");
    a.node.log(id, "first");
    const reply = await send(a, "GET", `/jobs/${id}/logs`, "", { accept: "text/event-stream" });
    assert.match(reply.headers!["content-type"]!, /^text\/event-stream/);
    const events = reply.stream![Symbol.asyncIterator]();
    assert.match((await events.next()).value!.toString(), /^id: 1\nevent: log\n/);
    const beat = events.next();
    await clock.advance(15_000);
    assert.equal((await beat).value!.toString(), ":\n\n");
    const more = events.next();
    a.node.log(id, "second");
    assert.match((await more).value!.toString(), /^id: 2\n/);
    assert.equal(a.node.followers(id), 1);
    void events.next();
    await events.return!();
    assert.equal(a.node.followers(id), 0);
  });

  it("tells a fault of its own under the id of the request, and keeps the rest for the log", async () => {
    const { cluster, a } = await one();
    await using _ = cluster;
    a.node.trouble = new Error("secret detail");
    const reply = await send(a, "POST", "/jobs?internal=1", '{"task":"hello"}', { "x-request-id": "r-7" });
    assert.deepEqual([reply.status, bodyOf(reply).request_id], [500, "r-7"]);
    assert.doesNotMatch(reply.body!, /secret/);
    assert.equal(a.log.lines.at(-1)!.fields["reqId"], "r-7");
  });
});
