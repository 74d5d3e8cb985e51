/** Who is dead, and who only looked like it. */

import assert from "node:assert/strict";
import { SESSION_GONE_MS, type NodeSign } from "../../../src/core/leadership/failure-detector.ts";
import type { NodeIdentity } from "../../../src/core/node.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { systemRandom } from "../../../src/platform/random.ts";
import { candidate, granted } from "../../support/lock-candidates.ts";
import { ROLE } from "../../support/lock-world.ts";
import type { Promises } from "../promises.ts";
import { CALM, leader, QUICK, sees, type NodesWorld } from "./nodes-world.ts";
import { eventually } from "../../support/wait.ts";

function sign({ incarnation }: NodeIdentity, heartbeat: number): NodeSign {
  return { incarnation, status: "active", heartbeat, locked: true, held: false };
}

const isStale = { code: "STALE_EPOCH" };

export function deathPromises(): Promises<NodesWorld> {
  const foundDead =
    (...statuses: readonly string[]) =>
    async ({ cluster, settled, leaveEntry, entry }: NodesWorld): Promise<void> => {
      await settled(CALM.deadAfterMs);
      const ada = await leader(cluster, { settings: CALM });
      await ada.nobodyDead(100);
      const gone = await Promise.all(statuses.map((status) => leaveEntry(`was-${status}`, { status })));
      const startedAt = systemClock.monotonic();
      const dead = await ada.firstDead();
      const tookMs = systemClock.monotonic() - startedAt;
      assert.deepEqual(
        dead.toSorted((a, b) => a.name.localeCompare(b.name)),
        gone.toSorted((a, b) => a.name.localeCompare(b.name)),
      );
      assert.ok(tookMs >= SESSION_GONE_MS && tookMs < CALM.deadAfterMs / 2, `took ${tookMs} ms`);
      for (const each of gone) assert.equal((await entry(each))?.status, "dead");
    };

  return {
    "nodes whose sessions have ended are found dead long before their heartbeats are old, whatever they did":
      foundDead("joining", "active", "draining"),

    "dead nodes are reported until they are marked as recovered, also to the next leader, and then forgotten in time":
      async ({ cluster, settled, leaveEntry, entry }) => {
        await settled(QUICK.deadAfterMs);
        const settings = { ...QUICK, forgetAfterMs: 200 };
        const ada = await leader(cluster, { settings });
        const gone = await leaveEntry("bob");
        await ada.firstDead();
        assert.deepEqual(await ada.coordination.membership.findDead(ada.term), [gone]);

        const identity = candidate("next", systemRandom.uuid());
        const next = await cluster.start("next", { identity, settings });
        await ada.coordination.lock(ROLE).release(ada.term);
        const term = await granted(next.lock(ROLE), identity, 60_000);
        assert.deepEqual(await next.membership.findDead(term), [gone], "without watching again");
        await next.membership.markRecovered([gone], term);
        assert.equal((await entry(gone))?.recovered, true);
        assert.deepEqual(await next.membership.findDead(term), []);
        await eventually("forgotten", async () => {
          await next.membership.findDead(term);
          return (await entry(gone)) === null;
        });
      },

    "a node that only says nothing is found dead by its heartbeat, after a whole watch of this very term":
      async ({ cluster, leaveEntry }) => {
        const silent = { unseen: true, heartbeatAgoMs: 3_600_000 };
        const ada = await leader(cluster);
        const gone = await leaveEntry("bob", silent);
        const startedAt = systemClock.monotonic();
        assert.deepEqual(await ada.firstDead(), [gone]);
        const tookMs = systemClock.monotonic() - startedAt;
        assert.ok(tookMs >= QUICK.deadAfterMs, "was not watched for long enough");

        await leaveEntry("cyd", silent);
        const { membership } = ada.coordination;
        await membership.markRecovered([gone], ada.term);
        await ada.nobodyDead(QUICK.deadAfterMs / 2);
        const again = await granted(
          ada.coordination.lock(ROLE),
          candidate("leader", ada.term.incarnation),
          60_000,
        );
        for (let ms = 0; ms < QUICK.deadAfterMs - 200; ms += 100) {
          assert.deepEqual(await membership.findDead(again), [], "counted what an earlier term saw");
          await systemClock.sleep(100);
        }
      },

    "statuses that this version does not know are kept, and their nodes never taken for dead": async ({
      cluster,
      leaveEntry,
      entry,
    }) => {
      const ada = await leader(cluster);
      const odd = await leaveEntry("bob", { status: "hibernating", heartbeatAgoMs: 3_600_000 });
      await ada.nobodyDead(QUICK.deadAfterMs + 200);
      assert.equal((await entry(odd))?.status, "hibernating");
      await eventually("it is seen", () => sees(ada.coordination.membership, "bob", "hibernating"));
    },

    "an old leader marks nobody: STALE_EPOCH": async ({ cluster, leaveEntry, entry }) => {
      const ada = await leader(cluster);
      const gone = await leaveEntry("bob");
      const { heartbeat } = (await entry(gone))!;
      await granted(ada.coordination.lock(ROLE), candidate("leader", ada.term.incarnation), 60_000);
      const { membership } = ada.coordination;
      await assert.rejects(membership.findDead(ada.term), isStale);
      await assert.rejects(membership.markRecovered([gone], ada.term), isStale);
      await assert.rejects(membership.registry.markDead([sign(gone, heartbeat)], ada.term), isStale);
      assert.equal((await entry(gone))?.status, "active");
    },

    "a node whose heartbeat came in the meantime is not marked": async ({ cluster, leaveEntry, entry }) => {
      const ada = await leader(cluster);
      const bob = await leaveEntry("bob");
      const { heartbeat } = (await entry(bob))!;
      const { registry } = ada.coordination.membership;
      assert.deepEqual(await registry.markDead([sign(bob, heartbeat - 1)], ada.term), []);
      assert.equal((await entry(bob))?.status, "active");
      assert.deepEqual(await registry.markDead([sign(bob, heartbeat)], ada.term), [bob]);
    },

    "a node that was marked dead by mistake comes back by itself, and is not marked as recovered": async ({
      cluster,
      entry,
      write,
    }) => {
      const ada = await leader(cluster);
      const identity = candidate("bob", systemRandom.uuid());
      const bob = await cluster.start("bob", { identity, settings: QUICK });
      await bob.membership.setStatus("draining");
      await write(identity, { status: "dead" });
      await eventually("bob is back", async () => (await entry(identity))?.status === "draining");
      await ada.coordination.membership.markRecovered([identity], ada.term);
      assert.equal((await entry(identity))?.recovered, false);
      assert.deepEqual(await ada.coordination.membership.findDead(ada.term), []);
    },

    "a node whose connection broke is back before it is taken for dead": async ({
      cluster,
      settled,
      endConnections,
    }) => {
      await settled(QUICK.deadAfterMs);
      const ada = await leader(cluster);
      const identity = candidate("bob", systemRandom.uuid());
      await cluster.start("bob", { identity, settings: QUICK });
      await ada.nobodyDead(100);
      for (let round = 0; round < 3; round++) {
        await endConnections(identity);
        await ada.nobodyDead(400);
      }
    },

    "a list that somebody has deleted is there again with the next heartbeats, and nobody died": async ({
      cluster,
      loseList,
      count,
    }) => {
      const ada = await leader(cluster);
      const bob = await cluster.start("bob", { settings: QUICK });
      await bob.membership.setStatus("active");
      await loseList();
      await eventually("everybody is back", async () => {
        await ada.coordination.membership.findDead(ada.term);
        return (await count()) === 2;
      });
      await ada.nobodyDead(200);
      await eventually("bob is active", () => sees(ada.coordination.membership, "bob", "active"));
    },
  };
}
