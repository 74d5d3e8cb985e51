import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { strayLeases } from "../../../src/controller/leased-runs.ts";
import type { NodeName } from "../../../src/core/ids.ts";
import type { Term } from "../../../src/core/leadership/term.ts";
import { fakePlatform } from "../../support/fake-platform.ts";
import type { Abandoned, Recovered } from "../../../src/store/store.ts";

const term = (epoch: number): Term => {
  return { role: "scheduler", leader: "a" as NodeName, incarnation: "one", epoch };
};

function world() {
  const recovered: [Abandoned, number][] = [];
  const faults: Error[] = [];
  const recover = async (which: Abandoned, { epoch }: Term): Promise<readonly Recovered[]> => {
    const fault = faults.shift();
    if (fault) throw fault;
    recovered.push([which, epoch]);
    return [];
  };
  const switchedOff = new Set<string>();
  return {
    recovered,
    faults,
    switchedOff,
    strays: strayLeases(fakePlatform(), { recover }, switchedOff),
  };
}

describe("leases that nobody holds", () => {
  it("of agents that were switched off are ended once, by the first term that can", async () => {
    const { recovered, faults, switchedOff, strays } = world();
    await strays.clear(term(6));
    assert.deepEqual(recovered, [], "there are none");
    switchedOff.add("ada-worker");
    faults.push(new Error("the term was lost in between"));
    await assert.rejects(strays.clear(term(7)));
    switchedOff.add("ada-worker");
    await strays.clear(term(9));
    await strays.clear(term(9));
    assert.deepEqual(recovered, [[{ by: "holders", names: ["agent:ada-worker"] }, 9]]);
  });

  it("of answers that many agents have lost in the same moment are ended together, under the term of each", async () => {
    const { recovered, strays } = world();
    await Promise.all([
      strays.unanswered("ada", ["r1", "r2"], term(7)),
      strays.unanswered("bob", ["r1"], term(7)),
      strays.unanswered("ada", ["r2"], term(7)),
    ]);
    await strays.unanswered("ada", [], term(7));
    const names = ["agent:ada/r1", "agent:ada/r2", "agent:bob/r1"];
    const found = new Set(recovered.flatMap(([which]) => (which.by === "holders" ? which.names : [])));
    assert.deepEqual(found, new Set(names));
    assert.ok(recovered.every(([, epoch]) => epoch === 7));
  });
});
