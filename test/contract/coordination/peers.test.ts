import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { hasCode } from "../../../src/core/errors.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { lifecycleStress } from "../../support/lifecycle-stress.ts";
import { candidate, granted, OWN_INFO } from "../../support/lock-candidates.ts";
import { PeerWorld, QUICK, urlOf } from "../../support/lock-peers.ts";
import { ROLE, type OpenLock } from "../../support/lock-world.ts";
import { leaseLockContract } from "./contract.ts";
import { membershipContract } from "./membership.ts";
import { eventually } from "../../support/wait.ts";

/** So many peers are the lock; the one that asks may be stopped and started again. */
function openLock(names: readonly string[], quorum: "majority" | "none" = "majority"): OpenLock {
  return async () => {
    const clock = new ManualClock();
    const world = new PeerWorld(clock, names, { quorum });
    const [first, ...others] = names as [string, ...string[]];
    const reopen = async () => {
      await world.peers.get(first)?.stop();
      const { coordination } = await world.start(first);
      await clock.advance(1);
      return coordination.lock(ROLE);
    };
    for (const name of others) await world.start(name);
    const lock = await reopen();
    const usual = quorum === "none" ? 1 : 0;
    await eventually("everybody votes", async () => {
      await clock.advance(100);
      return names.every((name) => world.coordination(name).notes().length === usual);
    });
    return {
      lock,
      ttlMs: 1_000,
      rounds: 30,
      elapse: (ms) => clock.advance(ms),
      reopen,
      close: () => world[Symbol.asyncDispose](),
    };
  };
}

leaseLockContract("three peers'", openLock(["node-a", "node-b", "node-c"]));
leaseLockContract("three peers' without a quorum", openLock(["node-a", "node-b", "node-c"], "none"));

membershipContract("joined peers'", async () => {
  const world = new PeerWorld(systemClock, [], QUICK);
  const info = () => OWN_INFO;
  const { coordination, identity } = await world.start("kim", {
    info,
    source: { kind: "join", addresses: [] },
  });
  await eventually("a cluster", () => coordination.peers.names().length === 1);
  const fence = await granted(coordination.lock(ROLE), identity, 60_000);
  return {
    membership: coordination.membership,
    identity,
    info: OWN_INFO,
    fence,
    join: async (name) => {
      const source = { kind: "join", addresses: [urlOf("kim")] } as const;
      const joined = await world.start(name, { info, source });
      await eventually(`${name} as a member`, () =>
        joined.coordination.peers.names().includes(joined.identity.name),
      );
      return joined.coordination.membership;
    },
    close: () => world[Symbol.asyncDispose](),
  };
});

describe("coordination by peers", () => {
  test("has one lock a role; the roles other than the scheduler's are this node's own", async () => {
    await using world = new PeerWorld(systemClock, ["node-a", "node-b", "node-c"], QUICK);
    const { coordination } = await world.start("node-a");
    assert.equal(coordination.lock(ROLE), coordination.lock(ROLE));
    const own = coordination.lock("log_compactor");
    assert.equal(own, coordination.lock("log_compactor"));
    // Alone of three it cannot lead the cluster; its own store it can look after.
    assert.equal(await coordination.lock(ROLE).acquire(candidate("node-a"), 1_000), null);
    assert.ok(await own.acquire(candidate("node-a"), 1_000));
  });

  test("refuses to be used while it does not run", async () => {
    await using world = new PeerWorld(systemClock, ["node-a"], QUICK);
    const { coordination } = world.make("node-a");
    await assert.rejects(coordination.lock(ROLE).read(), { code: "STOPPED" });
    const reply = await coordination.handle({
      from: "node-b",
      method: "POST",
      path: "/peer/vote",
      headers: {},
      body: "{}",
    });
    assert.equal(reply.status, 503);
  });

  test("a list without this node's own name is a mistake that names the field", () => {
    const world = new PeerWorld(systemClock, ["node-b"], QUICK);
    assert.throws(
      () => world.make("node-a"),
      (error) => hasCode(error, "BAD_CONFIG") && error.details.field === "nodes",
    );
  });

  lifecycleStress("coordination by peers", async () => {
    const world = new PeerWorld(systemClock, ["node-a"], QUICK);
    const { coordination, transport, identity } = world.make("node-a");
    await transport.start();
    return {
      service: coordination,
      works: async (service) => {
        const lock = service.lock(ROLE);
        await lock.release(await granted(lock, identity, 60_000));
      },
      close: () => world[Symbol.asyncDispose](),
    };
  });
});
