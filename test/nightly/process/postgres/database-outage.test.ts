/** The database ends, crashes and stands still under load, and comes back (S21, S22, S26). No node is restarted for it. */

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { it } from "node:test";
import { systemClock } from "../../../../src/platform/clock.ts";
import { TestCluster } from "../../../support/cluster.ts";
import {
  assertNotReady,
  assertStoreAway,
  audit,
  LEASE_MS,
  recovered,
  SHORT_LEASES,
  underLoad,
} from "../../../support/database-faults.ts";
import { LeaderClaims } from "../../../support/leader-claims.ts";
import { dataDirectory } from "../../../support/process-node.ts";
import { eventually } from "../../../support/wait.ts";

it("three nodes live through every kind of loss of their database", async (t) => {
  const cluster = await TestCluster.open(t, { settings: SHORT_LEASES, server: { durable: true } });
  await cluster.startAll("ada", "bob", "cyd");

  await t.test(
    "a fast restart: 503 for everybody, nobody leads, what runs goes on, and all of it resumes",
    async (t) => {
      const callers = await underLoad(t, cluster);
      const { epoch } = await cluster.leader();
      const ledger = join(await dataDirectory(t), "runs");
      const { client } = cluster.node("ada");
      const { job_id: running } = await client.submit({ task: "work", payload: { ms: 3_000, ledger } });
      await cluster.node("ada").processing(running);
      const watch = new LeaderClaims(t, () => cluster.nodes);

      await cluster.server.halt("fast");
      const haltedAt = systemClock.monotonic();
      await Promise.all([...cluster.nodes.values()].map((node) => assertStoreAway(node, running)));
      await systemClock.sleep(Math.max(0, haltedAt + 1.2 * LEASE_MS - systemClock.monotonic()));
      const relaunchedAt = systemClock.monotonic();
      assert.deepEqual(
        watch.between(haltedAt + LEASE_MS, relaunchedAt),
        [],
        "somebody led without a database",
      );
      assert.deepEqual(
        watch.between(haltedAt + 200, relaunchedAt),
        [],
        "a broken session is an end of the term",
      );
      await cluster.server.relaunch();

      const next = await recovered(cluster);
      t.diagnostic(
        `down for ${(relaunchedAt - haltedAt).toFixed(0)} ms; a leader after ${next.ms.toFixed(0)} ms`,
      );
      assert.ok(next.ms < 3_000, `a leader ${next.ms} ms after the server was back`);
      assert.ok(next.epoch === epoch || next.epoch === epoch + 1, `epoch ${epoch} became ${next.epoch}`);
      const job = await cluster.node("bob").jobWhen(running, ({ status }) => status === "completed");
      assert.deepEqual([job.attempts, job.crashes, job.failures], [1, 0, 0], "it ran on meanwhile");
      assert.equal((await readFile(ledger, "utf8")).trim().split("\n").length, 1);
      t.diagnostic(`${callers.acknowledged.size} acknowledged, ${callers.refusals} refused meanwhile`);
      await audit(cluster, callers);
      watch.assertOneAtATime();
    },
  );

  await t.test(
    "a crash under hundreds of commits a second: whatever was acknowledged is there",
    async (t) => {
      const callers = await underLoad(t, cluster, { count: 32, pauseMs: 5 });
      const { epoch } = await cluster.leader();
      const [before, from] = [await commits(cluster), systemClock.monotonic()];
      const acknowledged = callers.acknowledged.size;
      await systemClock.sleep(1_500);
      const seconds = (systemClock.monotonic() - from) / 1_000;
      const perSecond = ((await commits(cluster)) - before) / seconds;
      const accepted = (callers.acknowledged.size - acknowledged) / seconds;
      t.diagnostic(`${perSecond.toFixed(0)} commits/s, ${accepted.toFixed(0)} acknowledged submits/s`);
      assert.ok(perSecond > 150, `only ${perSecond} commits/s`); // 500 and more on a machine of its own

      await cluster.server.halt("immediate");
      await cluster.server.relaunch();
      const next = await recovered(cluster);
      t.diagnostic(`a leader ${next.ms.toFixed(0)} ms after the crash`);
      assert.ok(next.epoch === epoch || next.epoch === epoch + 1, `epoch ${epoch} became ${next.epoch}`);
      const count = callers.acknowledged.size;
      await eventually("work to flow again", async () => callers.acknowledged.size > count + 50 || null);
      await audit(cluster, callers);
    },
  );

  await t.test(
    "every process of the server stands still for two leases: nobody leads, and it is over in seconds",
    async (t) => {
      const callers = await underLoad(t, cluster);
      const { epoch } = await cluster.leader();
      const watch = new LeaderClaims(t, () => cluster.nodes);
      cluster.server.pause();
      const pausedAt = systemClock.monotonic();
      await systemClock.sleep(LEASE_MS);
      await Promise.all([...cluster.nodes.values()].map((node) => assertNotReady(node)));
      await systemClock.sleep(Math.max(0, pausedAt + 2 * LEASE_MS - systemClock.monotonic()));
      cluster.server.resume();
      const resumedAt = systemClock.monotonic();
      const next = await recovered(cluster);
      const ms = systemClock.monotonic() - resumedAt;
      t.diagnostic(
        `stood still for ${(resumedAt - pausedAt).toFixed(0)} ms; all ready after ${ms.toFixed(0)} ms`,
      );
      assert.deepEqual(watch.between(pausedAt + LEASE_MS, resumedAt), [], "somebody led without a database");
      assert.ok(next.ms < 3_000, `a leader ${next.ms} ms after the server went on`);
      assert.equal(next.epoch, epoch + 1, "a renewal that waited in the server has revived no term");
      await audit(cluster, callers);
      watch.assertOneAtATime();
    },
  );
});

async function commits(cluster: TestCluster): Promise<number> {
  const [row] = await cluster.sql(
    "SELECT pg_stat_get_db_xact_commit(oid)::int AS n FROM pg_database WHERE datname = current_database()",
  );
  return row!["n"] as number;
}
