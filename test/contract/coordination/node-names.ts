/** Whose name it is, and what a node hears that has it. */

import assert from "node:assert/strict";
import { hasCode } from "../../../src/core/errors.ts";
import type { NodeName } from "../../../src/core/ids.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { systemRandom } from "../../../src/platform/random.ts";
import { candidate, OWN_INFO } from "../../support/lock-candidates.ts";
import type { Promises } from "../promises.ts";
import { recordingLog } from "../../support/node-log.ts";
import { CALM, leader, QUICK, type NodesWorld } from "./nodes-world.ts";
import { eventually } from "../../support/wait.ts";

export const namePromises: Promises<NodesWorld> = {
  "one that was taken for dead and whose name is somebody else's now is told so, and stays out": async ({
    cluster,
    displace,
    remove,
    entry,
  }) => {
    const log = recordingLog();
    const identity = candidate("bob", systemRandom.uuid());
    await cluster.start("bob", { identity, settings: QUICK, log });
    await displace(identity);
    await eventually("a warning", () => log.matching(/bob.*restart it under/).length > 0);
    await remove(identity);
    await systemClock.sleep(4 * QUICK.heartbeatMs);
    assert.equal(await entry(identity), null);
  },

  "a node that was taken for dead and whose name another has taken says so, until the name is free again":
    async ({ cluster, displace, remove }) => {
      const identity = candidate("bob", systemRandom.uuid());
      const { membership } = await cluster.start("bob", { identity, settings: QUICK });
      assert.equal(membership.displaced(), null);
      const other = await displace(identity);
      await eventually("it to know", () => membership.displaced() !== null);
      assert.match(membership.displaced()!, /another has taken the name bob/);
      await remove(other);
      await eventually("it to be back", () => membership.displaced() === null);
    },

  "a second node of a name is refused while the first lives, with what to do about it": async ({
    cluster,
    count,
  }) => {
    const info = () => ({ ...OWN_INFO, startedAt: 1_767_225_600_000 });
    await cluster.start("bob", { settings: QUICK, info });
    const log = recordingLog();
    const startedAt = systemClock.monotonic();
    await assert.rejects(cluster.start("bob", { settings: QUICK, log }), (error: unknown) => {
      assert.ok(hasCode(error, "NAME_IN_USE"));
      assert.match(error.message, /bob.*host host.*version 1\.2\.3.*2026-01-01T00:00:00.*--name/);
      return true;
    });
    assert.ok(systemClock.monotonic() - startedAt >= 2 * QUICK.deadAfterMs, "gave up early");
    assert.equal(log.matching(/bob.*waiting/).length, 1);
    assert.equal(await count(), 1);
  },

  "a predecessor whose life has ended does not hold up a restart, however young its heartbeat": async ({
    cluster,
    settled,
    leaveEntry,
    entry,
  }) => {
    await settled(CALM.deadAfterMs);
    const gone = await leaveEntry("bob");
    const startedAt = systemClock.monotonic();
    const bob = await cluster.start("bob", { settings: CALM });
    assert.ok(systemClock.monotonic() - startedAt < CALM.deadAfterMs / 2, "waited for its heartbeat");
    assert.equal((await entry(gone))?.status, "dead");
    assert.deepEqual(
      bob.membership.nodes().map(({ name, status, alive }) => ({ name, status, alive })),
      [
        { name: "bob", status: "joining", alive: true },
        { name: "bob", status: "dead", alive: false },
      ],
    );
  },

  "a predecessor whose end could not be seen is waited for until its heartbeat is old": async ({
    cluster,
    leaveEntry,
    entry,
  }) => {
    const before = systemClock.monotonic();
    const gone = await leaveEntry("bob", { unseen: true });
    await cluster.start("bob", { settings: QUICK });
    assert.ok(systemClock.monotonic() - before >= QUICK.deadAfterMs - 100);
    assert.equal((await entry(gone))?.status, "dead");
  },

  "a node that stops is not in the list any more": async ({ cluster, count }) => {
    const ada = await leader(cluster);
    const bob = await cluster.start("bob", { settings: QUICK });
    await eventually("bob is seen", () => ada.coordination.membership.nodes().length === 2);
    await bob.stop();
    await eventually("bob is gone", () => ada.coordination.membership.nodes().length === 1);
    assert.equal(await count(), 1);
  },

  "a node that says nothing looks less and less alive, and cannot be asked for anything": async ({
    cluster,
    leaveEntry,
  }) => {
    const { membership } = await cluster.start("ada", { settings: QUICK });
    await leaveEntry("bob", { unseen: true });
    const alive = (): boolean | undefined => membership.nodes().find(({ name }) => name === "bob")?.alive;
    await eventually("bob looks alive", () => alive() === true);
    await eventually("bob does not", () => alive() === false);
    assert.equal(await membership.ask("bob" as NodeName, "drain"), false);
  },

  "a request is heard within moments, though heartbeats are far apart": async ({ cluster }) => {
    const settings = { ...QUICK, heartbeatMs: 60_000, deadAfterMs: 600_000 };
    const { membership } = await cluster.start("bob", { settings });
    const over = new AbortController();
    const requests = membership.requests(over.signal)[Symbol.asyncIterator]();
    assert.equal(await membership.ask("bob" as NodeName, "drain"), true);
    assert.deepEqual(await requests.next(), { done: false, value: "drain" });
    over.abort();
  },

  "a request without a notification is found in the list, and cleared there": async ({
    cluster,
    write,
    entry,
  }) => {
    const identity = candidate("cyd", systemRandom.uuid());
    const { membership } = await cluster.start("cyd", { identity, settings: QUICK });
    const over = new AbortController();
    await write(identity, { request: "resume" });
    const told = await membership.requests(over.signal)[Symbol.asyncIterator]().next();
    assert.deepEqual(told, { done: false, value: "resume" });
    await eventually("it is cleared", async () => (await entry(identity))?.request === null);
    over.abort();
  },
};
