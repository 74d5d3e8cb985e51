import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { heartbeater } from "../../../src/agent/heartbeater.ts";
import type { ClusterConnection } from "../../../src/client/connection/cluster-connection.ts";
import { silentLog } from "../../../src/platform/log.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { seededRandom } from "../../support/seeded-random.ts";

function world() {
  const clock = new ManualClock();
  const beats: unknown[] = [];
  const state = { running: 0, checks: 0, heard: true };
  const leader = {
    async postToLeader(_path: string, body: (maybeDone: boolean) => string) {
      beats.push((JSON.parse(body(false)) as { running: number }).running);
    },
    async checkLeader() {
      state.checks++;
      return state.heard ? "checked" : "silent";
    },
  } as unknown as ClusterConnection;
  const platform = { clock, random: seededRandom(1), log: silentLog };
  const sign = { agent: "ada", capabilities: ["work"], version: "1" };
  const heart = heartbeater({ platform, leader, agent: sign.agent }, sign, () => state.running);
  heart.start();
  return { clock, beats, state, heart };
}

describe("the heart of an agent", () => {
  it("tells the leader what it runs, and leaves it alone while that is nothing", async () => {
    const { clock, beats, state, heart } = world();
    await clock.advance(60_000);
    assert.deepEqual(beats, [0], "that it is there");
    assert.ok(state.checks >= 5 && state.checks <= 6, `${state.checks} checks in a minute`);
    state.running = 3;
    await clock.advance(30_000);
    assert.ok(beats.length >= 6 && beats.length <= 8, `${beats.length - 1} beats in 30 s`);
    assert.equal(beats.at(-1), 3);
    const checks = state.checks;
    state.running = 0;
    await clock.advance(6_000);
    assert.equal(beats.at(-1), 0, "that it is done");
    const told = beats.length;
    await clock.advance(30_000);
    assert.equal(beats.length, told);
    assert.ok(state.checks > checks);
    await heart.stop();
  });

  it("asks the leader itself where no other node answers", async () => {
    const { clock, beats, state, heart } = world();
    state.heard = false;
    await clock.advance(60_000);
    assert.ok(beats.length >= 5 && beats.length <= 7, `${beats.length} beats in a minute`);
    await heart.stop();
  });
});
