import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "../../../support/fast-check.ts";
import {
  addressesOf,
  usableOf,
  failed,
  heardOf,
  learned,
  nextNode,
  nodeList,
  stoodBy,
  worked,
  type NodeList,
} from "../../../../src/client/connection/node-list.ts";

const A = "http://10.0.0.1:8420";
const B = "http://10.0.0.2:8420";
const C = "http://10.0.0.3:8420";

function order(list: NodeList, wish: { leader?: boolean; hints?: readonly string[] } = {}): string[] {
  const asked = new Set<string>();
  for (let url = nextNode(list, { ...wish, asked }); url !== null; url = nextNode(list, { ...wish, asked }))
    asked.add(url);
  return [...asked];
}

describe("addresses of nodes", () => {
  it("are one, several, or one text with commas between them", () => {
    assert.deepEqual(addressesOf(A), [A]);
    assert.deepEqual(addressesOf(`${A}/, ${B},${A}`), [A, B]);
    assert.deepEqual(addressesOf([A, `${B},${C}`]), [A, B, C]);
    for (const bad of ["", `${A},`, "localhost:8420", "ftp://x", []]) {
      assert.throws(() => addressesOf(bad), { code: "BAD_URL" }, JSON.stringify(bad));
    }
  });

  it("are taken from the cluster only if they can be ours and are as safe as those given", () => {
    const told = [A, "http://127.0.0.1:8420", "http://localhost:1", "http://[::1]:2", "nonsense", `${A}/`];
    assert.deepEqual(usableOf(told, [B]), [A]);
    assert.deepEqual(usableOf(told, ["http://localhost:8420"]).length, 4);
    assert.deepEqual(usableOf([A, "https://b"], ["https://a"]), ["https://b"]);
    assert.deepEqual(usableOf([A, "https://b"], ["https://a", B]), [A, "https://b"]);
  });
});

describe("the choice of a node", () => {
  it("begins with the first that was given, and keeps to the one that works", () => {
    const list = nodeList([A, B, C]);
    assert.deepEqual(order(list), [A, B, C]);
    assert.deepEqual(order(worked(list, B, false)), [B, A, C]);
    assert.deepEqual(order(worked(list, B, true)), [A, B, C], "a leader is kept for what only a leader does");
    assert.deepEqual(order(worked(list, B, true), { leader: true }), [B, A, C]);
  });

  it("asks one that failed last, and forgets that it led", () => {
    const list = failed(worked(worked(nodeList([A, B, C]), A, false), A, true), A);
    assert.deepEqual(order(list), [B, C, A]);
    assert.deepEqual([list.current, list.leader], [null, null]);
    assert.deepEqual(order(failed(failed(list, B), C)), [A, B, C], "who failed longest ago is first again");
  });

  it("leaves one that stands by where it is", () => {
    const list = stoodBy(worked(worked(nodeList([A, B]), A, false), A, true), A);
    assert.deepEqual([list.current, list.leader], [A, null]);
  });

  it("goes first where a node points to, if that is known", () => {
    const list = nodeList([A, B]);
    assert.deepEqual(order(list, { leader: true, hints: [`${B}/`] }), [B, A]);
    assert.deepEqual(order(list, { leader: true, hints: [C] }), [A, B]);
    assert.deepEqual(order(heardOf(list, [C]), { leader: true, hints: [C] }), [C, A, B]);
    assert.equal(heardOf(list, ["http://127.0.0.1:1", "x", A]), list);
  });

  it("learns who belongs to the cluster, in any order, and never forgets what it was given", () => {
    const list = learned(nodeList([A]), [B, C]);
    assert.deepEqual(order(list), [A, B, C]);
    const crowd = Array.from({ length: 40 }, (_, n) => `http://10.1.0.${n}:8420`);
    const grown = learned(list, crowd);
    assert.deepEqual(grown.known, [A, ...crowd], "who is not listed makes room");
    assert.ok(learned(grown, [B]).known.includes(A));
    assert.ok(learned(grown, [B]).known.length <= 33);
  });

  it("asks each node once in a round, whatever happened before", () => {
    const node = fc.constantFrom(A, B, C, "http://10.0.0.4:8420");
    const step = fc.oneof(
      fc.tuple(fc.constant("worked"), node, fc.boolean()),
      fc.tuple(fc.constant("failed"), node, fc.boolean()),
      fc.tuple(fc.constant("stoodBy"), node, fc.boolean()),
      fc.tuple(fc.constant("learned"), node, fc.boolean()),
    );
    const apply = (list: NodeList, [what, url, flag]: [string, string, boolean]): NodeList => {
      if (what === "worked") return worked(list, url, flag);
      if (what === "failed") return failed(list, url);
      return what === "stoodBy" ? stoodBy(list, url) : learned(list, [url]);
    };
    fc.assert(
      fc.property(fc.array(step), fc.boolean(), fc.array(node), (steps, leader, hints) => {
        const list = steps.reduce<NodeList>(apply, nodeList([A, B]));
        const asked = order(list, { leader, hints });
        assert.deepEqual([...asked].sort(), [...list.known].sort());
        for (const seed of [A, B]) assert.ok(asked.includes(seed));
      }),
    );
  });
});
