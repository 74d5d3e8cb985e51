import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { FastifyInstance } from "fastify";
import { peerApps, type PeerApp, type PeerApps } from "../../support/peer-apps.ts";
import { FakeNode, suiteApp } from "../../unit/http/fake-node.ts";
import { column } from "../../support/columns.ts";

interface Page {
  readonly entries: readonly {
    readonly id: string;
    readonly kind: string;
    readonly subject: string | null;
  }[];
  readonly next_cursor: string | null;
  readonly partial: boolean;
  readonly unreachable: readonly string[];
}

async function get(
  app: Pick<FastifyInstance, "inject">,
  query = "",
): Promise<{ status: number; body: Page }> {
  const answer = await app.inject({ method: "GET", url: `/cluster/journal${query}` });
  return { status: answer.statusCode, body: answer.json() };
}

describe("the journal of a store", () => {
  const node = new FakeNode();
  const app = suiteApp(node);

  it("is told newest first, by kind, family and subject", async () => {
    node.journal.note({ kind: "term.started", subject: "scheduler", detail: { epoch: 1 } });
    node.journal.note({ kind: "node.joined", subject: "node-b" });
    node.journal.note({ kind: "node.dead", subject: "node-b" });
    node.journal.note({ kind: "audit", actor: "anna", subject: "queue mail" });
    const { body } = await get(app);
    assert.deepEqual(body.entries[3], {
      id: "1",
      at: "2026-01-01T00:00:00.000Z",
      kind: "term.started",
      node: "node-a",
      actor: null,
      subject: "scheduler",
      detail: { epoch: 1 },
    });
    assert.deepEqual([body.partial, body.unreachable, body.next_cursor], [false, [], null]);
    const kinds = async (query: string): Promise<string[]> =>
      (await get(app, query)).body.entries.map(({ kind }) => kind);
    assert.deepEqual(await kinds("?kind=node"), ["node.dead", "node.joined"]);
    assert.deepEqual(await kinds("?kind=node.dead"), ["node.dead"]);
    assert.deepEqual(await kinds("?subject=node-b&kind=node.joined"), ["node.joined"]);
    assert.deepEqual(await kinds("?kind=audit"), ["audit"]);
  });

  it("goes on page by page, and refuses what is not one of its cursors", async () => {
    for (let n = 0; n < 5; n++) node.journal.note({ kind: "audit", subject: String(n) });
    const first = await get(app, "?limit=2");
    assert.deepEqual(column(first.body.entries, "subject"), ["4", "3"]);
    const rest = await get(app, `?limit=10&cursor=${first.body.next_cursor}`);
    assert.deepEqual(column(rest.body.entries, "subject"), ["2", "1", "0"]);
    assert.equal(rest.body.next_cursor, null);
    assert.equal((await get(app, "?cursor=nonsense")).status, 400);
    assert.equal((await get(app, "?kind=nonsense")).status, 400);
  });
});

describe("the journals of peers", () => {
  let peers: PeerApps;
  before(async () => {
    peers = await peerApps({ names: ["node-a", "node-b", "node-c"], way: "memory" });
  });
  after(() => peers[Symbol.asyncDispose]());

  it("are put together whichever is asked, page by page, and a missing one is told", async () => {
    const nodes = peers.nodes as readonly [PeerApp, PeerApp, PeerApp];
    for (let n = 0; n < 12; n++) {
      const { node } = nodes[n % 3]!;
      for (const each of nodes) await each.node.clock.advance(1_000);
      node.journal.note({ kind: "audit", subject: String(n) });
    }
    for (const { app } of nodes) {
      const seen: (string | null)[] = [];
      let pages = 0;
      for (let query = "?limit=5"; ;) {
        const { body } = await get(app, query);
        assert.equal(body.partial, false);
        seen.push(...body.entries.map(({ subject }) => subject));
        pages++;
        if (body.next_cursor === null) break;
        query = `?limit=5&cursor=${body.next_cursor}`;
      }
      assert.deepEqual(
        seen,
        Array.from({ length: 12 }, (_, n) => String(11 - n)),
      );
      assert.equal(pages, 3);
    }
    peers.see("node-c", { alive: false, status: "dead" });
    const { body } = await get(nodes[0].app);
    assert.deepEqual([body.partial, body.unreachable], [true, ["node-c"]]);
    assert.deepEqual(new Set(body.entries.map(({ id }) => id.split(":")[0])), new Set(["node-a", "node-b"]));
  });
});
