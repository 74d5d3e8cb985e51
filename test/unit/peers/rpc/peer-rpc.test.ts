/** What a request between nodes ends as, and how a round of them is decided. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BatonError } from "../../../../src/core/errors.ts";
import type { NodeName } from "../../../../src/core/ids.ts";
import { PeerClient, servePeers, type PeerAnswer } from "../../../../src/peers/rpc/peer-rpc.ts";
import { askMajority, quorumRound } from "../../../../src/peers/rpc/quorum-round.ts";
import type { Outcome } from "../../../../src/transport/transport.ts";
import { fakePlatform } from "../../../support/fake-platform.ts";
import { ManualClock } from "../../../support/manual-clock.ts";

const [a, b, c] = ["node-a", "node-b", "node-c"] as NodeName[] as [NodeName, NodeName, NodeName];

const reply = (status: number, body: unknown): Outcome => ({
  outcome: "reply",
  status,
  headers: {},
  body: typeof body === "string" ? body : JSON.stringify(body),
});

describe("a request to a peer", () => {
  const positions = { index: 1, count: 2, epoch: 3 };
  const node = { name: b, incarnation: "1" };

  const cases: [string, Outcome | Error, Partial<PeerAnswer<unknown>> & { code?: string }][] = [
    ["an answer", reply(200, { ...positions, node }), { got: "answer", value: positions, node }],
    ["an answer without a name", reply(200, positions), { got: "answer", value: positions, node: null }],
    ["an answer of another shape", reply(200, { index: -1 }), { got: "unknown", code: "BAD_PEER_REPLY" }],
    ["an answer that is no JSON", reply(200, "<html>"), { got: "unknown", code: "BAD_PEER_REPLY" }],
    ["an error", reply(503, { error: "STOPPED" }), { got: "unknown", code: "STOPPED" }],
    ["a proxy's error", reply(502, "bad gateway"), { got: "unknown", code: "status 502" }],
    ["a newer term", reply(409, { error: "STALE_EPOCH", message: "m" }), { got: "stale" }],
    ["a call that did not arrive", { outcome: "refused", reason: "down" }, { got: "refused" }],
    ["a lost answer", { outcome: "unknown", reason: "broke" }, { got: "unknown" }],
    ["a transport that throws", new Error("stopped"), { got: "unknown" }],
  ];
  for (const [name, outcome, { code, ...expected }] of cases) {
    it(`${name} is ${expected.got}`, async () => {
      const client = new PeerClient(async () => {
        if (outcome instanceof Error) throw outcome;
        return outcome;
      });
      const to = { name: b, url: "http://b" };
      const got = await client.ask(to, "positions", { count: 2 }, { deadlineMs: 1 });
      assert.deepEqual({ ...got, ...expected }, got);
      assert.equal(got.got === "unknown" ? got.error?.code : undefined, code);
    });
  }

  it("goes nowhere without an address", async () => {
    const client = new PeerClient(() => assert.fail("it was sent"));
    const got = await client.ask({ name: b, url: null }, "positions", { count: 1 }, { deadlineMs: 1 });
    assert.equal(got.got, "refused");
  });

  it("is answered with the name of the node, or with the error that the handler throws", async () => {
    const platform = fakePlatform({ name: b });
    const handle = servePeers(platform, {
      positions: ({ count }, from) => {
        if (count > 1) throw new BatonError("NOT_LEADER", `${from} has to ask another node`);
        return { index: 7, count, epoch: 1 };
      },
    });
    const client = new PeerClient(async (_url, { method, path, body = "" }) => {
      const { status, body: text = "" } = await handle({ from: a, method, path, headers: {}, body });
      return reply(status, text);
    });
    const ask = (count: number) =>
      client.ask({ name: b, url: "http://b" }, "positions", { count }, { deadlineMs: 1 });
    const value = { index: 7, count: 1, epoch: 1 };
    assert.deepEqual(await ask(1), { got: "answer", value, node: platform.identity });
    const refusal = await ask(2);
    assert.match(refusal.got === "unknown" ? refusal.reason : "", /NOT_LEADER: node-a has to ask/);
  });
});

describe("a round of requests", () => {
  const answer = (value: number): PeerAnswer<number> => ({ got: "answer", value, node: null });
  const never = new Promise<PeerAnswer<number>>(() => {});

  const majority = (answers: Record<string, Promise<PeerAnswer<number>> | PeerAnswer<number>>) =>
    askMajority({ what: "it cannot be stored", members: [a, b, c], ask: async (name) => answers[name]! });

  it("ends with a majority, however long the others take", async () => {
    assert.deepEqual([...(await majority({ [a]: answer(1), [b]: answer(2), [c]: never })).values()], [1, 2]);
  });

  it("ends with an error that names the reasons when a majority cannot come", async () => {
    const refused: PeerAnswer<number> = { got: "refused", reason: "node-b: down" };
    const lost: PeerAnswer<number> = { got: "unknown", reason: "node-c: lost" };
    await assert.rejects(majority({ [a]: answer(1), [b]: refused, [c]: lost }), {
      code: "STORE_UNAVAILABLE",
      message: "it cannot be stored: 1 of 3 nodes answered, 2 are needed (node-b: down; node-c: lost)",
    });
  });

  it("ends with the first member that knows a newer term", async () => {
    const stale: PeerAnswer<number> = { got: "stale", reason: "node-b: term 2" };
    await assert.rejects(majority({ [a]: answer(1), [b]: stale, [c]: never }), { code: "STALE_EPOCH" });
  });

  it("asks again whoever is silent or refuses, but this node only once, until its time is over", async () => {
    const clock = new ManualClock();
    const asked: NodeName[] = [];
    const round = quorumRound<number, string>({
      members: [a, b, c],
      ask: async (name) => {
        asked.push(name);
        if (name !== b) return never;
        return asked.filter((each) => each === b).length < 3 ? { got: "refused", reason: "down" } : answer(5);
      },
      judge: ({ answers, refused, over }) =>
        over ? `${answers.get(b)} of b, ${refused.size} refused` : null,
      limit: { clock, self: a, deadlineMs: 100, againMs: 25 },
    });
    for (let waited = 0; waited < 100; waited += 25) await clock.advance(25);
    assert.equal(await round, "5 of b, 0 refused");
    const count = (name: NodeName): number => asked.filter((each) => each === name).length;
    assert.deepEqual([count(a), count(b), count(c)], [1, 3, 4]);
  });
});
