import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { FastifyInstance } from "fastify";
import type { BulkAnswer } from "../../../src/api/operations/jobs/bulk-jobs.ts";
import { peerApps, type PeerApp, type PeerApps } from "../../support/peer-apps.ts";
import { FakeNode, suiteApp } from "../../unit/http/fake-node.ts";
import { columns } from "../../support/columns.ts";

async function bulk(
  app: Pick<FastifyInstance, "inject">,
  payload: object,
): Promise<{ status: number; body: any }> {
  const answer = await app.inject({ method: "POST", url: "/cluster/jobs/bulk", payload });
  return { status: answer.statusCode, body: answer.json() };
}

async function all(
  app: Pick<FastifyInstance, "inject">,
  request: object,
): Promise<{ matched: number; changed: number; pages: number }> {
  const sum = { matched: 0, changed: 0, pages: 0 };
  let cursor: string | null = null;
  do {
    const { status, body } = await bulk(app, { ...request, ...(cursor !== null && { cursor }) });
    assert.equal(status, 200, JSON.stringify(body));
    const { matched, changed, next_cursor } = body as BulkAnswer;
    sum.matched += matched;
    sum.changed += changed;
    sum.pages++;
    cursor = next_cursor;
    assert.ok(sum.pages < 100, "it does not end");
  } while (cursor !== null);
  return sum;
}

describe("many jobs at once", () => {
  const node = new FakeNode();
  const app = suiteApp(node);

  const count = (status: string): number =>
    [...node.kept.values()].filter(({ job }) => job.status === status).length;

  it("are counted first, then retried page by page", async () => {
    for (let n = 0; n < 25; n++) node.add("failed");
    for (let n = 0; n < 5; n++) node.add("completed");
    const request = { action: "retry", filter: {}, limit: 10 };
    assert.deepEqual(await all(app, { ...request, dry_run: true }), { matched: 25, changed: 0, pages: 3 });
    assert.equal(count("failed"), 25);
    assert.deepEqual(await all(app, request), { matched: 25, changed: 25, pages: 3 });
    assert.deepEqual([count("failed"), count("queued"), count("completed")], [0, 25, 5]);
  });

  it("are cancelled in all states in which that is possible", async () => {
    for (const status of ["queued", "scheduled", "processing", "completed"] as const) node.add(status);
    const { changed } = await all(app, { action: "cancel", filter: {}, reason: "enough" });
    assert.equal(changed, 3);
    assert.deepEqual([count("cancelled"), count("completed")], [2, 1]);
    assert.ok([...node.kept.values()].some(({ job }) => job.cancelRequested));
  });

  it("are chosen by the message that the failures tell", async () => {
    const messages = ["no user 1", "no user 22", "something else"];
    for (const message of messages) {
      const kept = node.kept.get(node.add("failed"))!;
      kept.job.error = { code: "ERROR", message };
    }
    const filter = { error_code: "ERROR", error_message: "no user #" };
    assert.deepEqual(await all(app, { action: "retry", filter }), { matched: 2, changed: 2, pages: 1 });
    const { body } = await bulk(app, { action: "delete", filter: { status: "failed" } });
    assert.deepEqual([body.matched, body.changed], [1, 1]);
  });

  it("by their ids say why one was left alone", async () => {
    const [failed, completed] = [node.add("failed"), node.add("completed")];
    const gone = "node-a-0198c0de-0000-7000-8000-000000000000";
    const { body } = await bulk(app, { action: "retry", ids: [failed, completed, gone] });
    assert.deepEqual([body.matched, body.changed, body.skipped_count], [3, 1, 2]);
    assert.deepEqual(
      new Set(body.skipped.map(({ job_id, why }: { job_id: string; why: string }) => `${job_id} ${why}`)),
      new Set([`${completed} it is completed`, `${gone} it is gone`]),
    );
  });

  it("are refused with the field at fault where it makes no sense", async () => {
    const cases: [object, string][] = [
      [{ action: "retry" }, "filter"],
      [{ action: "retry", filter: {}, ids: ["node-a-0198c0de-0000-7000-8000-000000000000"] }, "filter"],
      [{ action: "retry", filter: { status: "queued" } }, "filter.status"],
      [{ action: "cancel", filter: { status: "failed" } }, "filter.status"],
      [{ action: "delete", filter: {} }, "filter.status"],
      [{ action: "delete", filter: { status: "processing" } }, "filter.status"],
      [{ action: "retry", filter: {}, cursor: "nonsense" }, "cursor"],
      [{ action: "explode", filter: {} }, "action"],
      [{ action: "retry", filter: {}, limit: 5_000 }, "limit"],
    ];
    for (const [request, field] of cases) {
      const { status, body } = await bulk(app, request);
      assert.deepEqual([status, body.field], [400, field], JSON.stringify(request));
    }
  });
});

describe("failures and leaders", () => {
  const node = new FakeNode();
  const app = suiteApp(node);

  const get = async (url: string): Promise<any> => (await app.inject({ method: "GET", url })).json();

  it("failures are grouped, the largest first", async () => {
    for (const message of ["no user 1", "no user 2", "other"]) {
      node.kept.get(node.add("failed"))!.job.error = { code: "ERROR", message };
    }
    const body = await get("/cluster/failures");
    assert.deepEqual(columns(body.groups as any[], "message", "count"), [
      ["no user #", 2],
      ["other", 1],
    ]);
    assert.deepEqual([body.looked_at, body.complete, body.partial], [3, true, false]);
    assert.deepEqual((await get("/cluster/failures?task=unknown")).groups, []);
  });

  it("terms are told with their ends, and refused writes with examples", async () => {
    const term = { role: "scheduler", epoch: 1, leader: "node-a" };
    node.journal.note({ kind: "term.started", subject: "scheduler", detail: term });
    await node.clock.advance(1_000);
    node.journal.note({ kind: "term.ended", subject: "scheduler", detail: { ...term, reason: "resigned" } });
    const what = "the result of an earlier run";
    node.journal.note({
      kind: "write.refused",
      detail: { what, carried_epoch: 1, current_epoch: 2, count: 4 },
    });
    const body = await get("/cluster/leaders/history?role=scheduler");
    assert.equal(body.terms.length, 1);
    assert.deepEqual([body.terms[0].reason, body.terms[0].epoch], ["resigned", 1]);
    assert.notEqual(body.terms[0].ended_at, null);
    assert.equal(body.refused.count, 4);
    assert.deepEqual(
      [
        body.refused.examples[0].what,
        body.refused.examples[0].carried_epoch,
        body.refused.examples[0].job_id,
      ],
      [what, 1, null],
    );
  });

  it("a job's story has its runs, and who owned it when", async () => {
    const id = node.add("completed");
    const past = {
      jobEpoch: 1,
      worker: "node-b",
      leaderEpoch: 7,
      startedAt: 1_000,
      endedAt: 2_000,
      outcome: "crashed",
      error: null,
    } as const;
    node.runsOf.set(id, { past: [past], assignments: [17] });
    const detail = { from: "node-b", to: "node-c", owner_epoch: 3, reason: "shutdown" };
    node.journal.note({ kind: "handoff", subject: "assignment/17", detail });
    node.journal.note({ kind: "write.refused", subject: id, detail: { what: "a result", carried_epoch: 1 } });
    const body = await get(`/jobs/${id}/timeline`);
    assert.equal(body.job_id, id);
    assert.equal(body.runs[0].outcome, "crashed");
    assert.deepEqual(
      [body.handoffs[0].from, body.handoffs[0].to, body.handoffs[0].owner_epoch],
      ["node-b", "node-c", 3],
    );
    const what = body.events.map((event: { what: string }) => event.what);
    for (const expected of ["submitted", "crashed", "handed_over", "write_refused"]) {
      assert.ok(what.includes(expected), `${expected} in ${what}`);
    }
    assert.equal(
      (await get("/jobs/node-a-0198c0de-0000-7000-8000-000000000000/timeline")).error,
      "NOT_FOUND",
    );
  });
});

describe("among peers", () => {
  let peers: PeerApps;
  before(async () => {
    peers = await peerApps({ names: ["node-a", "node-b", "node-c"], way: "memory" });
  });
  after(() => peers[Symbol.asyncDispose]());

  it("jobs of all nodes are retried through any of them, by filter and by id", async () => {
    const nodes = peers.nodes as readonly [PeerApp, PeerApp, PeerApp];
    for (const { node } of nodes) {
      for (let n = 0; n < 7; n++)
        node.kept.get(node.add("failed"))!.job.error = { code: "ERROR", message: `no ${n}` };
    }
    const answer = await nodes[1].app.inject({ method: "GET", url: "/cluster/failures" });
    assert.deepEqual([answer.json().groups[0].count, answer.json().looked_at], [21, 21]);
    const one = [...nodes[2].node.kept.keys()][0]!;
    const byId = await bulk(nodes[0].app, {
      action: "retry",
      ids: [one, "node-x-0198c0de-0000-7000-8000-000000000000"],
    });
    assert.deepEqual([byId.body.changed, byId.body.skipped_count, byId.body.partial], [1, 1, true]);
    assert.equal(nodes[2].node.kept.get(one)!.job.status, "queued");
    const { changed, pages } = await all(nodes[0].app, { action: "retry", filter: {}, limit: 9 });
    assert.deepEqual([changed, pages], [20, 3]);
    for (const { node } of nodes)
      assert.ok([...node.kept.values()].every(({ job }) => job.status === "queued"));
    peers.see("node-c", { alive: false });
    const { body } = await bulk(nodes[0].app, { action: "cancel", filter: { status: "queued" } });
    assert.deepEqual([body.partial, body.changed], [true, 14]);
  });
});
