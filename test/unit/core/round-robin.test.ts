import assert from "node:assert/strict";
import { describe, test } from "node:test";
import * as fc from "../../support/fast-check.ts";
import { isJobId, jobId, type NodeName, uuidAt } from "../../../src/core/ids.ts";
import { mergePages } from "../../../src/api/ask-all-nodes.ts";
import { nodeInfo } from "../../support/job-builders.ts";
import { byKey, inTurn, willing } from "../../../src/core/placement-rules.ts";

const wants = { role: "worker", tasks: ["hello"] } as const;
const names = (nodes: readonly { name: string }[]): string => nodes.map(({ name }) => name).join(" ");

describe("the round", () => {
  test("goes through the nodes in order, again and again", () => {
    const nodes = ["a", "b", "c"];
    const firsts = [0, 1, 2, 3, 4, 5, 6].map((position) => inTurn(nodes, position)[0]);
    assert.deepEqual(firsts, ["a", "b", "c", "a", "b", "c", "a"]);
    assert.deepEqual(inTurn(nodes, 4), ["b", "c", "a"], "whoever is next is tried next");
    assert.deepEqual(inTurn([], 4), []);
  });

  test("gives everybody the same share, wherever it begins", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 9 }),
        fc.nat(1e15),
        fc.integer({ min: 1, max: 20 }),
        (n, from, rounds) => {
          const items = Array.from({ length: n }, (_, i) => i);
          const shares = items.map(() => 0);
          for (let i = 0; i < n * rounds; i++) shares[inTurn(items, from + i)[0]!]!++;
          assert.deepEqual(
            shares,
            items.map(() => rounds),
          );
        },
      ),
    );
  });

  test("leaves out who is dead, silent, draining, joining, or of a status that only a newer version knows", () => {
    const nodes = [
      nodeInfo("a"),
      nodeInfo("b", { status: "dead", alive: false }),
      nodeInfo("c", { alive: false }),
      nodeInfo("d", { status: "draining" }),
      nodeInfo("e", { status: "joining" }),
      nodeInfo("f", { status: "hibernating" }),
      nodeInfo("g"),
    ];
    assert.equal(names(willing(nodes, wants)), "a g");
  });

  test("leaves out who cannot run it, unless nobody can", () => {
    const nodes = [
      nodeInfo("a", { capabilities: [] }),
      nodeInfo("b"),
      nodeInfo("c", { roles: ["gateway"] }),
      nodeInfo("d", { capabilities: ["hello", "bye"] }),
    ];
    assert.equal(names(willing(nodes, wants)), "b d");
    assert.equal(names(willing(nodes, { role: "worker", tasks: ["hello", "bye"] })), "d");
    assert.equal(names(willing(nodes, { role: "worker", tasks: ["unheard of"] })), "a b c d");
  });
});

describe("the home of a key", () => {
  const five = ["a", "b", "c", "d", "e"].map((name) => ({ name }));

  test("is the same for whoever asks, and moves only when its own node goes", () => {
    fc.assert(
      fc.property(fc.string(), fc.shuffledSubarray(five, { minLength: 1 }), (key, some) => {
        const all = byKey(five, key);
        const present = new Set(some.map(({ name }) => name));
        assert.equal(names(byKey(some, key)), names(all.filter(({ name }) => present.has(name))));
      }),
    );
  });

  test("is spread over the nodes, also for keys that differ little", () => {
    const shares = new Map<string, number>();
    for (let i = 0; i < 10_000; i++) {
      const home = byKey(five, `order-${i}`)[0]!.name;
      shares.set(home, (shares.get(home) ?? 0) + 1);
    }
    for (const [name, share] of shares) assert.ok(share > 1_700 && share < 2_300, `${name}: ${share}`);
    assert.equal(shares.size, 5);
  });
});

describe("the ids of a batch", () => {
  test("are ids, all different, and sort in its order", () => {
    const hex = (length: number) => fc.stringMatching(new RegExp(`^[0-9a-f]{${length}}$`));
    const uuids = fc
      .tuple(hex(7), hex(4), hex(3), hex(3), hex(12))
      .map(([a, b, c, d, e]) => `0${a}-${b}-7${c}-8${d}-${e}`);
    fc.assert(
      fc.property(uuids, fc.integer({ min: 2, max: 10_000 }), (first, count) => {
        const ids = Array.from({ length: count }, (_, index) => uuidAt(first, index));
        assert.equal(ids[0], first);
        for (let i = 1; i < count; i++) assert.ok(ids[i - 1]! < ids[i]!, `${ids[i - 1]} ${ids[i]}`);
        assert.ok(isJobId(jobId("n" as NodeName, ids.at(-1)!)));
      }),
      { numRuns: 30 },
    );
  });
});

describe("pages of several nodes", () => {
  const newer = (a: number, b: number): boolean => a > b;

  test("make one list that is read to its end, newest first, whatever the pages", () => {
    const lists = fc.array(fc.uniqueArray(fc.nat(999), { maxLength: 30 }), { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(
        lists,
        fc.integer({ min: 1, max: 7 }),
        fc.integer({ min: 1, max: 7 }),
        (all, limit, page) => {
          const sorted = all.map((list, node) => list.map((at) => at * 10 + node).sort((a, b) => b - a));
          const at = sorted.map(() => 0);
          const read: number[] = [];
          for (let calls = 0; calls < 500; calls++) {
            const pages = sorted.map((list, i) => ({
              node: String(i),
              items: list.slice(at[i], at[i]! + page),
              more: list.length > at[i]! + page,
            }));
            const { items, taken } = mergePages(pages, limit, newer);
            if (items.length === 0) break;
            assert.ok(items.length <= limit);
            read.push(...items);
            taken.forEach((count, i) => (at[i]! += count));
          }
          assert.deepEqual(
            read,
            sorted.flat().sort((a, b) => b - a),
          );
        },
      ),
    );
  });

  test("stop where something newer may be behind the end of one", () => {
    const pages = [
      { node: "a", items: [9, 8], more: true },
      { node: "b", items: [5, 4], more: false },
    ];
    assert.deepEqual(mergePages(pages, 10, newer), { items: [9, 8], taken: [2, 0] });
  });
});
