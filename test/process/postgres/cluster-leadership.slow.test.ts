/** Who leads when the leader stands still, is busy, or has a wrong clock (S04, S05, S07, S08, S09). */

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { before, describe, it } from "node:test";
import { Client } from "pg";
import { systemClock } from "../../../src/platform/clock.ts";
import { QUICK, roleOf, TestCluster } from "../../support/cluster.ts";
import {
  assertNothingStale,
  COMMIT_ORDER_SETTINGS,
  staleCommits,
  watchGrants,
} from "../../support/commit-order.ts";
import { atEnd, suiteScope } from "../../support/node-cleanup.ts";
import { eventually } from "../../support/wait.ts";
import { wallClocks } from "../../support/wall-clock.ts";

const NAMES = ["ada", "bob", "cyd"];
const LEASE_MS = 2_000;
const settings = { ...QUICK, LEADER__LEASE: "2s" };

async function epochOf(cluster: TestCluster): Promise<number> {
  const [row] = await cluster.sql("SELECT epoch::int FROM baton.term WHERE role = 'scheduler'");
  return row!["epoch"] as number;
}

async function nextLeader(cluster: TestCluster, except: string, after: number) {
  return eventually("another leader", async () => {
    for (const [name, node] of cluster.nodes) {
      if (name === except) continue;
      const role = await roleOf(node);
      if (role?.role === "LEADER" && role.leader_epoch! > after) return { name, epoch: role.leader_epoch! };
    }
    return null;
  });
}

/** From its first answer on it says that it stands by; it never says again that it leads under its old term. */
async function standsBy(cluster: TestCluster, name: string): Promise<number> {
  const from = systemClock.monotonic();
  await eventually(`${name} to stand by`, async () => {
    const role = await roleOf(cluster.node(name));
    assert.notEqual(role?.role, "LEADER", `${name} believes in its old term`);
    return role?.role === "STANDBY" || null;
  });
  return systemClock.monotonic() - from;
}

// Both mostly wait, each for a cluster of its own.
describe("who leads", { concurrency: true }, () => {
  describe("a leader that stands still", { concurrency: 1 }, () => {
    const suite = suiteScope();
    let cluster: TestCluster;

    before(async () => {
      cluster = await TestCluster.open(suite, {
        settings,
        server: { durable: false, settings: COMMIT_ORDER_SETTINGS },
      });
      await cluster.startWithQueues(...NAMES);
      await watchGrants(cluster);
      // Something is fired every 50 ms: wherever a leader is stopped, a transaction is not far.
      const { client } = cluster.node("ada");
      for (let n = 0; n < 20; n++) {
        await client.putSchedule({ name: `often-${n}`, task: "tick", every_ms: 1_000, missed: "run_all" });
        await systemClock.sleep(50);
      }
    });

    it("for 0.4 of its lease keeps its term", async () => {
      const { name, node, epoch } = await cluster.leader();
      node.signal("SIGSTOP");
      await systemClock.sleep(0.4 * LEASE_MS);
      node.signal("SIGCONT");
      await systemClock.sleep(200);
      const after = await cluster.leader();
      assert.deepEqual([after.name, after.epoch], [name, epoch]);
      assert.equal(await epochOf(cluster), epoch);
    });

    it("inside an open transaction, between its fence and its commit: the transaction is rolled back before the next term begins", async (t) => {
      const { name, node, epoch } = await cluster.leader();
      const gate = new Client({ connectionString: cluster.url });
      await gate.connect();
      try {
        // Whoever notes an occurrence waits here, with the fence in its hands.
        await gate.query("SELECT pg_advisory_lock(7)");
        await gate.query(`
        CREATE FUNCTION audit.wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
          PERFORM pg_advisory_xact_lock_shared(7);
          RETURN NULL;
        END $$;
        CREATE TRIGGER waits AFTER INSERT ON baton.occurrence FOR EACH STATEMENT EXECUTE FUNCTION audit.wait()`);
        const [waiting] = await eventually("a transaction of the leader to be open", async () => {
          const { rows } = await gate.query(
            `SELECT pid, application_name FROM pg_stat_activity
           WHERE wait_event_type = 'Lock' AND wait_event = 'advisory' AND query ILIKE '%baton.occurrence%'`,
          );
          return rows.length > 0 ? (rows as { pid: number; application_name: string }[]) : null;
        });
        node.signal("SIGSTOP");
        const stoppedAt = systemClock.monotonic();
        await gate.query("SELECT pg_advisory_unlock(7)");
        await eventually("the transaction to stand open", async () => {
          const { rows } = await gate.query("SELECT state FROM pg_stat_activity WHERE pid = $1", [
            waiting!.pid,
          ]);
          return (rows[0] as { state: string } | undefined)?.state === "idle in transaction" || null;
        });
        const next = await nextLeader(cluster, name, epoch);
        const tookMs = systemClock.monotonic() - stoppedAt;
        t.diagnostic(`replaced after ${tookMs.toFixed(0)} ms with a lease of ${LEASE_MS} ms`);
        assert.equal(next.epoch, epoch + 1);
        assert.ok(tookMs < LEASE_MS + 2_000, `replaced after ${tookMs} ms`);
        const { rows } = await gate.query("SELECT 1 FROM pg_stat_activity WHERE pid = $1", [waiting!.pid]);
        assert.deepEqual(rows, [], "its session was ended");
        node.signal("SIGCONT");
        t.diagnostic(`stood by after ${(await standsBy(cluster, name)).toFixed(0)} ms`);
      } finally {
        node.signal("SIGCONT");
        await gate.query("SELECT pg_advisory_unlock_all()");
        await gate.query("DROP TRIGGER IF EXISTS waits ON baton.occurrence");
        await gate.end();
      }
      await systemClock.sleep(300); // for whatever it would still write
      const { grants, occurrences } = await assertNothingStale(cluster);
      t.diagnostic(`${grants} grants, ${occurrences} occurrences`);
      assert.ok(grants >= 1 && occurrences > 20);
    });

    /** `npm run proof:leadership` does it fifty times. */
    it("at a moment that nobody chose: nothing of its term is committed after the next grant; a mere look at the term, as a fence, would be found out", async (t) => {
      const { name, node, epoch } = await cluster.leader();
      const careless = new Client({ connectionString: cluster.url });
      await careless.connect();
      try {
        await careless.query("BEGIN");
        const look = "SELECT FROM baton.term WHERE role = 'scheduler' AND epoch = $1";
        assert.equal((await careless.query(look, [epoch])).rowCount, 1);
        await systemClock.sleep(Math.random() * 200);
        node.signal("SIGSTOP");
        await nextLeader(cluster, name, epoch);
        await careless.query(
          `INSERT INTO baton.occurrence (schedule, at, noted_at, leader_epoch, fired)
           SELECT 'careless', 1, max(noted_at), $1, false FROM baton.occurrence`,
          [epoch],
        );
        await careless.query("COMMIT");
        node.signal("SIGCONT");
        await standsBy(cluster, name);
        await systemClock.sleep(300);
        const found = await staleCommits(cluster);
        assert.deepEqual(
          found.map(({ what, under }) => [what, under]),
          [["occurrence careless@1", epoch]],
        );
        await careless.query("DELETE FROM baton.occurrence WHERE schedule = 'careless'");
      } finally {
        node.signal("SIGCONT");
        await careless.end();
      }
      const { grants, occurrences } = await assertNothingStale(cluster);
      t.diagnostic(`${grants} grants, ${occurrences} occurrences`);
    });

    it("because a job keeps its event loop busy for two leases loses its term, and nothing it writes later is accepted", async (t) => {
      const { name, epoch } = await cluster.leader();
      const other = [...cluster.nodes.keys()].find((each) => each !== name)!;
      const { client } = cluster.node(other);
      const { job_id } = await client.submit({ task: "block", queue: name, payload: { ms: 2 * LEASE_MS } });
      await cluster.node(other).processing(job_id);
      const startedAt = systemClock.monotonic();
      const next = await nextLeader(cluster, name, epoch);
      t.diagnostic(`replaced after ${(systemClock.monotonic() - startedAt).toFixed(0)} ms`);
      assert.ok(systemClock.monotonic() - startedAt < LEASE_MS + 2_000);
      await client.wait(job_id, { timeoutMs: 10_000 });
      await standsBy(cluster, name);
      await systemClock.sleep(300);
      await assertNothingStale(cluster);
      const job = await client.job(job_id);
      t.diagnostic(`the job took ${job.attempts} runs`);
      // Evicted from the database, its node may have looked dead: the job then ran again, and the first result was refused.
      assert.deepEqual([job.status, job.failures, job.worker], ["completed", 0, name]);
      assert.deepEqual((await client.result(job_id)).result, { epoch: job.job_epoch });
      assert.equal(await epochOf(cluster), next.epoch, "nobody else took a term");
    });
  });

  describe("a wall clock that leaps by an hour", () => {
    const dir = mkdtempSync(join(tmpdir(), "baton-clock-"));
    const clocks = wallClocks(dir);
    const suite = suiteScope();
    atEnd(suite, () => rmSync(dir, { recursive: true, force: true }));

    it(
      "costs neither a leader its term nor gives it to a standby, ahead and back",
      { skip: clocks === null && "there is no C compiler for the library that moves the clock" },
      async (t) => {
        const cluster = await TestCluster.open(t, {
          settings: { ...QUICK, LEADER__LEASE: "1s", LEADER__RENEW: "200ms", LEADER__MARGIN: "300ms" },
        });
        const byName = new Map(NAMES.map((name) => [name, clocks!(name)]));
        await Promise.all(NAMES.map((name) => cluster.start(name, {}, byName.get(name)!.command)));
        const { name: leader, epoch } = await cluster.leader();
        const standby = NAMES.find((name) => name !== leader)!;
        for (const [who, ahead] of [
          [leader, 3_600],
          [leader, -3_600],
          [leader, 0],
          [standby, 3_600],
          [standby, -3_600],
        ] as const) {
          byName.get(who)!.set(ahead);
          const { fires } = await cluster.node(who).client.previewSchedule({ every_ms: 1_000, count: 1 });
          const off = (Date.parse(fires[0]!) - systemClock.now()) / 1_000 - ahead;
          assert.ok(Math.abs(off) < 60, `the clock of ${who} is set`);
          const until = systemClock.monotonic() + 1_200;
          let lapses = 0;
          while (systemClock.monotonic() < until) {
            const role = await roleOf(cluster.node(leader));
            if (role?.role !== "LEADER") lapses++;
            await systemClock.sleep(50);
          }
          assert.ok(lapses <= 5, `${who} ${ahead} s: ${leader} led, apart from the moment of a renewal`);
          const now = await cluster.leader();
          assert.deepEqual([now.name, now.epoch], [leader, epoch], `${who} ${ahead} s`);
        }
        assert.equal(await epochOf(cluster), epoch);
      },
    );
  });
});
