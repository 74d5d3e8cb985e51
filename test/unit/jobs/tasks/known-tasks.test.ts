import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { KnownTasks } from "../../../../src/jobs/tasks/known-tasks.ts";
import { BatonError } from "../../../../src/core/errors.ts";
import { ManualClock } from "../../../support/manual-clock.ts";

interface Cluster {
  readonly own?: readonly string[];
  readonly noted?: () => Promise<readonly string[]>;
  readonly agents?: readonly string[];
}

function cluster({ own = [], noted, agents = [] }: Cluster) {
  const nodes: { incarnation: string; capabilities: readonly string[] }[] = [];
  const clock = new ManualClock();
  let reads = 0;
  const list = async () => {
    reads++;
    return [{ capabilities: agents }] as never;
  };
  const known = new KnownTasks(
    { clock },
    {
      store: { agents: { list } as never, ...(noted && { notedTasks: noted }) },
      tasks: { names: () => new Set(own) },
      nodes: () => nodes,
    },
  );
  return { known, nodes, clock, reads: () => reads };
}

const refused = (message: RegExp) => ({ code: "UNKNOWN_TASK", message });

describe("the tasks that a cluster has had", () => {
  it("name the one that is like a misspelt name, and the field", async () => {
    const { known } = cluster({ own: ["identify-language", "hello"] });
    await assert.rejects(
      known.require("identify-langauge", { at: "[3]." }),
      (error: unknown) =>
        error instanceof BatonError &&
        error.code === "UNKNOWN_TASK" &&
        error.details.field === "[3].task" &&
        error.message ===
          'no node of this cluster has had the task "identify-langauge" so far; did you mean identify-language?; start one that has it, or give "[3].allow_unknown": true',
    );
    await assert.rejects(known.require("zzz"), refused(/so far; start one that has it, or/));
  });

  it("are those of this node and of all members, without a call", async () => {
    const { known, nodes, reads } = cluster({ own: ["mine"] });
    assert.ok(known.has("mine"));
    assert.ok(!known.has("theirs"));
    nodes.push({ incarnation: "b-1", capabilities: ["theirs"] });
    assert.ok(known.has("theirs"));
    nodes.pop();
    assert.ok(known.has("theirs"), "a member that has left may come back");
    assert.equal(reads(), 0);
  });

  it("are those that the store has of nodes and agents that are away, read once for many", async () => {
    const { known, reads } = cluster({ own: ["a"], noted: async () => ["old"], agents: ["leased"] });
    await Promise.all(["old", "leased", "old"].map((task) => known.require(task)));
    assert.equal(reads(), 1);
    await assert.rejects(known.require("odl"), refused(/did you mean old\?/));
  });

  it("may be any, while a member has not been heard or the store cannot be read", async () => {
    const unheard = cluster({ own: ["a"] });
    unheard.nodes.push({ incarnation: "", capabilities: [] });
    await unheard.known.require("b");
    unheard.nodes[0] = { incarnation: "b-1", capabilities: [] };
    await assert.rejects(unheard.known.require("b"), refused(/"b"/));
    const failing = cluster({ own: ["a"], noted: () => Promise.reject(new Error("down")) });
    await failing.known.require("b");
  });

  it("may be any before there is one, but not for a caller who waits for it", async () => {
    const { known } = cluster({});
    await known.require("b");
    await assert.rejects(known.require("b", { calls: true }), refused(/so far; start one that has it$/));
  });
});
