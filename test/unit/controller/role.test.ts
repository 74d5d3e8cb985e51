import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { NodeName } from "../../../src/core/ids.ts";
import { permits, roleOf } from "../../../src/core/leadership/role.ts";
import type { Term } from "../../../src/core/leadership/term.ts";

const term: Term = { role: "scheduler", leader: "a" as NodeName, incarnation: "one", epoch: 1 };

describe("the role of a node", () => {
  it("is DRAINING while the node drains, with a term and without", () => {
    assert.deepEqual([roleOf(term, false), roleOf(null, false)], ["LEADER", "STANDBY"]);
    assert.deepEqual([roleOf(term, true), roleOf(null, true)], ["DRAINING", "DRAINING"]);
  });

  it("permits new work to a leader, and the end of work to one that drains", () => {
    const cases = [
      [term, false],
      [term, true],
      [null, true],
      [null, false],
    ] as const;
    assert.deepEqual(
      cases.map(([held, draining]) => [permits(held, draining, "lead"), permits(held, draining, "finish")]),
      [
        [true, true],
        [false, true],
        [false, false],
        [false, false],
      ],
    );
  });
});
