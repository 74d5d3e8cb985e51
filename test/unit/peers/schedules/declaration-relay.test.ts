import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { hasCode } from "../../../../src/core/errors.ts";
import type { NodeName } from "../../../../src/core/ids.ts";
import { digestOf, originOf } from "../../../../src/jobs/schedules/schedule-origin.ts";
import { definition, ReplicaWorld } from "../../../support/replica-world.ts";

const declared = (payload: string) => {
  const one = definition({ name: "declared", payload });
  return [{ definition: one, digest: digestOf(one) }];
};

function handOver(world: ReplicaWorld, node: NodeName, version: string, payload: string): Promise<void> {
  return world.during(world.nodes.get(node)!.declarations.declare(version, declared(payload)));
}

/** The payload as each member has it. */
async function payloads(world: ReplicaWorld): Promise<(string | undefined)[]> {
  const found = world.members.map(async (name) => (await world.of(name).list()).at(0)?.payload);
  return Promise.all(found);
}

void describe("schedules of the code in a cluster of peers", () => {
  void test("are stored by the leader for a majority, whichever node declares them, once", () =>
    ReplicaWorld.with(3, async (world, a, b, c) => {
      await world.elect(a);
      for (const node of [b, c, a]) await handOver(world, node, "v1", "1");
      await world.clock.advance(1_000);
      assert.deepEqual(await payloads(world), ["1", "1", "1"]);
      const stored = (await world.of(c).list())[0]!;
      assert.equal(originOf(stored).origin, "code");
      assert.deepEqual(stored.declared!.versions, ["v1"]);
      assert.equal((await world.of(a).list()).length, 1);
    }));

  void test("stay those of the newer version when an old node hands its own over again, and after a change of leaders", () =>
    ReplicaWorld.with(3, async (world, a, b, c) => {
      await world.elect(a);
      await handOver(world, b, "v1", "1");
      await handOver(world, c, "v2", "2");
      await handOver(world, b, "v1", "1");
      assert.deepEqual((await world.of(a).list())[0]!.declared!.versions, ["v1", "v2"]);
      world.depose(a);
      await world.elect(b);
      await handOver(world, a, "v1", "1");
      await world.clock.advance(1_000);
      assert.deepEqual(await payloads(world), ["2", "2", "2"]);
    }));

  void test("wait for a leader with a majority, and nothing is stored meanwhile", () =>
    ReplicaWorld.with(3, async (world, a, b) => {
      const refused = (code: "NO_LEADER" | "STORE_UNAVAILABLE") => (error: unknown) => hasCode(error, code);
      await assert.rejects(handOver(world, b, "v1", "1"), refused("NO_LEADER"));
      await world.elect(a);
      world.isolate(a);
      await assert.rejects(handOver(world, b, "v1", "1"), refused("NO_LEADER"));
      await assert.rejects(handOver(world, a, "v1", "1"), refused("STORE_UNAVAILABLE"));
      world.network.heal();
      await handOver(world, b, "v1", "1");
      await world.clock.advance(3_000);
      assert.deepEqual(await payloads(world), ["1", "1", "1"]);
    }));
});
