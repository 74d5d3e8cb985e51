/** A pause of a queue is stored by a majority, and a node that was away has it before it runs jobs. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { NodeName } from "../../../../src/core/ids.ts";
import { ReplicaWorld } from "../../../support/replica-world.ts";

const paused = (world: ReplicaWorld, ...names: NodeName[]): Promise<boolean[]> =>
  Promise.all(names.map((name) => world.disks.get(name)!.queues.isPaused("mail")));

const setPaused = (world: ReplicaWorld, name: NodeName, to: boolean): Promise<void> =>
  world.during(world.nodes.get(name)!.pauses.setPaused("mail", to));

const collect = (world: ReplicaWorld, name: NodeName): Promise<void> =>
  world.during(world.nodes.get(name)!.pauses.collect());

describe("the pause of a queue among peers", () => {
  it("is stored by all nodes, whichever is asked, and so is its end", () =>
    ReplicaWorld.with(3, async (world, a, b, c) => {
      await world.elect(b);
      await setPaused(world, a, true);
      assert.deepEqual(await paused(world, a, b, c), [true, true, true]);
      await setPaused(world, a, true);
      await setPaused(world, b, false);
      assert.deepEqual(await paused(world, a, b, c), [false, false, false]);
    }));

  for (const to of [true, false]) {
    it(`reaches a node that was away before its worker starts: ${to ? "paused" : "resumed"}`, () =>
      ReplicaWorld.with(3, async (world, a, b, c) => {
        await world.elect(b, { duty: false });
        if (!to) await setPaused(world, b, true);
        await world.kill(a);
        await setPaused(world, c, to);
        await world.start(a);
        assert.deepEqual(await paused(world, a), [!to], "the leader has not brought it up to date yet");
        await collect(world, a);
        assert.deepEqual(await paused(world, a, b, c), [to, to, to]);
      }));
  }

  it("reaches a node with an empty disk from a majority of those that remember", () =>
    ReplicaWorld.with(3, async (world, a, b, c) => {
      await world.elect(b);
      await world.clock.advance(2_000);
      await world.kill(c);
      await setPaused(world, b, true);
      await world.kill(a);
      await world.start(a, true);
      await world.start(c);
      await collect(world, a);
      assert.deepEqual(await paused(world, a), [true]);
    }));

  it("outlives the leader that noted it", () =>
    ReplicaWorld.with(3, async (world, a, b, c) => {
      await world.elect(b);
      await world.kill(a);
      await setPaused(world, b, true);
      await world.kill(b);
      await world.start(a);
      await world.elect(c);
      await world.clock.advance(5_000);
      assert.deepEqual(await paused(world, a, c), [true, true]);
      await setPaused(world, c, false);
      assert.deepEqual(await paused(world, a, c), [false, false]);
    }));

  it("needs no other node for a start: what is known here holds", () =>
    ReplicaWorld.with(3, async (world, a, b, c) => {
      await world.elect(b);
      await setPaused(world, b, true);
      await world.kill(b);
      await world.kill(c);
      await world.kill(a);
      await world.start(a);
      await collect(world, a);
      assert.deepEqual(await paused(world, a), [true]);
    }));

  it("is refused without a majority with what to do, and takes effect once there is one, as the error says", () =>
    ReplicaWorld.with(3, async (world, a, b, c) => {
      await world.elect(b);
      world.isolate(b, "refused");
      await assert.rejects(setPaused(world, b, true), {
        code: "STORE_UNAVAILABLE",
        message: /single nodes may have stored it.*1 of 3 nodes answered, 2 are needed.*bring nodes back/,
      });
      assert.deepEqual(await paused(world, a, c), [false, false]);
      world.network.heal();
      await world.clock.advance(5_000);
      assert.deepEqual(await paused(world, a, b, c), [true, true, true]);
    }));

  it("is refused without a leader, or when the leader does not answer, with what to do", () =>
    ReplicaWorld.with(3, async (world, a, b) => {
      await assert.rejects(setPaused(world, a, true), { code: "NO_LEADER", message: /no node leads.*drain/ });
      await world.elect(b);
      world.isolate(a, "refused");
      await assert.rejects(setPaused(world, a, true), {
        code: "NO_LEADER",
        message: /nothing of queue mail/,
      });
      assert.deepEqual(await paused(world, a, b), [false, false]);
    }));

  it("that a node had before the cluster holds for all of it", () =>
    ReplicaWorld.with(3, async (world, a, b, c) => {
      await world.disks.get(a)!.queues.setPaused("mail", true);
      await world.elect(b);
      await world.clock.advance(5_000);
      assert.deepEqual(await paused(world, a, b, c), [true, true, true]);
    }));

  it("leaves nothing behind a day after the queue was resumed, and a schedule of the same name alone", () =>
    ReplicaWorld.with(3, async (world, a, b) => {
      await world.elect(b, { duty: false });
      await world.put(b, { name: "mail" });
      await setPaused(world, b, true);
      await setPaused(world, b, false);
      assert.equal((await world.disks.get(a)!.scheduleNotes.read("pauses")).notes.length, 1);
      await world.clock.advance(25 * 3_600_000);
      await world.elect(b);
      await world.clock.advance(5_000);
      assert.deepEqual((await world.disks.get(a)!.scheduleNotes.read("pauses")).notes, []);
      assert.equal((await world.of(a).list()).length, 1);
    }));
});
