import assert from "node:assert/strict";
import { describe, test } from "node:test";
import * as fc from "../../support/fast-check.ts";
import type { JobId, NodeName } from "../../../src/core/ids.ts";
import type { NodeInfo, NodeStatus } from "../../../src/core/node.ts";
import { nodeInfo } from "../../support/job-builders.ts";
import { decide, type Decision, type Target, type View } from "../../../src/core/route.ts";

const UUID = "0198c0de-1234-7abc-8def-0123456789ab";

const node = (name: string, status: NodeStatus = "active"): NodeInfo => nodeInfo(name, { status });

function view(changes: Partial<View> = {}): View {
  return {
    self: "ada" as NodeName,
    sharedStore: false,
    draining: false,
    leading: false,
    leader: null,
    nodes: [node("ada"), node("bob"), node("cyd")],
    settled: true,
    forwarded: false,
    ...changes,
  };
}

const jobOf = (name: string): Target => ({ at: "owner", job: `${name}-${UUID}` as JobId });

/** What is done, the name of the node it is forwarded to, or the code of the refusal. */
function shortly(decision: Decision): string {
  if (decision.do === "forward") return decision.to.name;
  return decision.do === "refuse" ? decision.code : decision.do;
}

const at = { here: { at: "here" }, any: { at: "any" }, leader: { at: "leader" } } as const;
const bobLeads = { leader: "bob" as NodeName };

describe("where a request is answered", () => {
  const table: readonly (readonly [
    title: string,
    Target,
    mutates: boolean,
    Partial<View>,
    expected: string,
  ])[] = [
    ["what is about this node, here, also while it drains", at.here, true, { draining: true }, "serve"],

    ["a new job, by whoever's turn it is", at.any, true, {}, "place"],
    ["a new job on a lone node, here", at.any, true, { nodes: [node("ada")] }, "serve"],
    ["a new job that was placed here by another node, here", at.any, true, { forwarded: true }, "serve"],
    ["a new job in a shared store, by whoever is asked", at.any, true, { sharedStore: true }, "serve"],
    [
      "a new job on a draining node, by the others",
      at.any,
      true,
      { draining: true, nodes: [node("ada", "draining"), node("bob")] },
      "place",
    ],
    [
      "a new job that nobody else takes, not by a node that drains",
      at.any,
      true,
      { draining: true, nodes: [node("ada", "draining")] },
      "DRAINING",
    ],
    [
      "a new job placed on a node that drains, not at all",
      at.any,
      true,
      { draining: true, forwarded: true },
      "DRAINING",
    ],
    ["a question to anybody, also by a node that drains", at.any, false, { draining: true }, "serve"],

    ["a leader's matter, by us when we lead", at.leader, true, { leading: true }, "serve"],
    ["a leader's matter, by the leader that we know", at.leader, true, bobLeads, "bob"],
    ["a leader's matter, by nobody when we know no leader", at.leader, true, {}, "NOT_LEADER"],
    [
      "a leader's matter, not by a node that only believes it led",
      at.leader,
      true,
      { leader: "ada" as NodeName },
      "NOT_LEADER",
    ],
    [
      "a leader's matter that was sent on to us when we no longer lead, not sent on again",
      at.leader,
      true,
      { ...bobLeads, forwarded: true },
      "NOT_LEADER",
    ],

    ["a job of ours, here", jobOf("ada"), false, {}, "serve"],
    ["a job of another node, by that node", jobOf("bob"), false, {}, "bob"],
    [
      "S93: a job of node-a, not by node",
      jobOf("bob-a"),
      false,
      { nodes: [node("ada"), node("bob"), node("bob-a")] },
      "bob-a",
    ],
    [
      "a job of a node that nobody knows, by us, who may have had that name",
      jobOf("zoe"),
      false,
      {},
      "serve",
    ],
    [
      "a job of a node that we do not know, by nobody while we may not know all",
      jobOf("zoe"),
      false,
      { settled: false },
      "OWNER_UNREACHABLE",
    ],
    [
      "S86: a job of a node that we do not know, sent on to us, not looked for here",
      jobOf("zoe"),
      false,
      { forwarded: true },
      "LOOP",
    ],
    ["any job in a shared store, here", jobOf("zoe"), false, { sharedStore: true }, "serve"],
    [
      "any job on a lone node, here, also under its former name",
      jobOf("zoe"),
      false,
      { nodes: [node("ada")] },
      "serve",
    ],
    [
      "S86: a job that was sent on to us by mistake, not sent on again",
      jobOf("bob"),
      false,
      { forwarded: true },
      "LOOP",
    ],
  ];
  for (const [title, target, mutates, changes, expected] of table) {
    test(title, () => assert.equal(shortly(decide(target, mutates, view(changes))), expected));
  }

  test("one hop at most, and never to ourselves, whatever the view", () => {
    const names = fc.constantFrom("ada", "bob", "cyd", "zoe");
    const views = fc
      .record({
        sharedStore: fc.boolean(),
        draining: fc.boolean(),
        leading: fc.boolean(),
        settled: fc.boolean(),
        forwarded: fc.boolean(),
        leader: fc.option(names.map((name) => name as NodeName)),
        nodes: fc
          .uniqueArray(names)
          .chain((all) =>
            fc.tuple(
              ...all.map((name) =>
                fc.constantFrom("active", "draining", "dead", "new").map((status) => node(name, status)),
              ),
            ),
          ),
      })
      .map((changes) => view(changes));
    const targets = fc.oneof(fc.constantFrom<Target>(at.here, at.any, at.leader), names.map(jobOf));
    fc.assert(
      fc.property(targets, fc.boolean(), views, (target, mutates, seen) => {
        const decision = decide(target, mutates, seen);
        if (decision.do === "place") assert.equal(seen.forwarded, false, "placed a second time");
        if (decision.do !== "forward") return;
        assert.equal(seen.forwarded, false, "sent on a second time");
        assert.notEqual(decision.to.name, "ada", "sent to ourselves");
        assert.ok(seen.nodes.includes(decision.to), "sent to a node that is not in the view");
      }),
    );
  });
});
