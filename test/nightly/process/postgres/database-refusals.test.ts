/** The database answers, and does not do what it is asked: read-only, full, or rolling back (S28, S31, S32). */

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { chown, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { it } from "node:test";
import { systemClock } from "../../../../src/platform/clock.ts";
import { TestCluster } from "../../../support/cluster.ts";
import {
  assertCalm,
  audit,
  LEASE_MS,
  recovered,
  type Refusal,
  SHORT_LEASES,
  underLoad,
} from "../../../support/database-faults.ts";
import { LeaderClaims } from "../../../support/leader-claims.ts";
import { dataDirectory, NodeProcess } from "../../../support/process-node.ts";
import { smallDisk } from "../../../support/small-disk.ts";
import { eventually } from "../../../support/wait.ts";

const MIB = 1_048_576;
/** As whom the server runs when the tests run as root. */
const NOBODY = 65_534;

it("a database whose disk is full takes no new jobs and half of none, and goes on when there is room", async (t) => {
  const disk = await smallDisk(t, 20 * MIB);
  if (typeof disk !== "string") return t.skip(disk.missing);
  const cluster = await TestCluster.open(t, { settings: SHORT_LEASES, server: { durable: true } });
  if (process.getuid?.() === 0) await chown(disk, NOBODY, NOBODY);
  // Only the tables are there: a full disk of the log ends the server, which is a crash like any other.
  await cluster.server.query(`CREATE TABLESPACE small LOCATION '${disk}'`);
  await cluster.server.query(`ALTER DATABASE ${new URL(cluster.url).pathname.slice(1)} SET TABLESPACE small`);
  const [node] = await cluster.startAll("ada");
  assert.ok(node);
  await node.client.pauseQueue("parked");
  const running = await node.begins({ task: "work", payload: { ms: 2_000 } });
  const ballast = join(disk, "ballast");
  await writeFile(ballast, Buffer.alloc(6 * MIB));
  const accepted: string[] = [];
  let refused: Refusal | null = null as Refusal | null;
  for (let count = 0; count < 100 && refused === null; count++) {
    // Not to be compressed.
    const payload = { ms: 0, filler: randomBytes(100_000).toString("base64") };
    const answer = await node.post("/jobs", { task: "work", queue: "parked", payload });
    if (answer.status === 200) accepted.push((answer.body as { job_id: string }).job_id);
    else {
      assert.equal(answer.status, 503);
      assert.ok(answer.headers.get("retry-after"));
      refused = answer.body as Refusal;
    }
  }
  t.diagnostic(`refused after ${accepted.length} jobs: ${refused?.message}`);
  assert.equal(refused?.error, "STORE_UNAVAILABLE");
  assert.match(refused.message, /^the disk of the database is full; free some space there: ./);
  await writeFile(join(disk, "rest"), Buffer.alloc(20 * MIB)).catch(() => {}); // as much as there is
  await systemClock.sleep(2_000);
  const again = await node.post("/jobs", {
    task: "work",
    queue: "parked",
    payload: { filler: randomBytes(50_000).toString("hex") },
  });
  assert.equal(again.status, 503);
  for (const id of accepted) assert.equal((await node.client.job(id)).status, "queued", "reads are answered");
  assertCalm(node);

  await rm(ballast);
  await rm(join(disk, "rest"));
  await recovered(cluster);
  await node.client.resumeQueue("parked");
  await node.idle();
  const jobs = await node.allJobs();
  assert.deepEqual(
    new Set(jobs.map(({ job_id }) => job_id)),
    new Set([running, ...accepted]),
    "no more and no less",
  );
  assert.ok(jobs.every(({ status, attempts }) => status === "completed" && attempts === 1));
  const [row] = await cluster.sql(
    "SELECT (SELECT count(*)::int FROM baton.job) AS job, (SELECT coalesce(sum(n), 0)::int FROM baton.done) AS done, (SELECT coalesce(sum(n), 0)::int FROM baton.live) AS live",
  );
  assert.deepEqual(row, { job: jobs.length, done: jobs.length, live: 0 });
  assertCalm(node);
});

/** Once in a transaction, at its end, and in every third of them; sequences remember what was rolled back. */
const ROLL_BACK = `
  CREATE SEQUENCE public.commits;
  CREATE SEQUENCE public.aborts;
  CREATE FUNCTION public.fail_some() RETURNS trigger LANGUAGE plpgsql AS $$
  DECLARE n bigint;
  BEGIN
    IF current_setting('fail.seen', true) IS DISTINCT FROM pg_current_xact_id()::text THEN
      PERFORM set_config('fail.seen', pg_current_xact_id()::text, true);
      n := nextval('public.commits');
      IF n % 3 = 0 THEN
        PERFORM nextval('public.aborts');
        RAISE EXCEPTION 'provoked' USING ERRCODE = CASE n % 2 WHEN 0 THEN '40001' ELSE '40P01' END;
      END IF;
    END IF;
    RETURN NULL;
  END $$;
  ${["job", "live", "done", "lease", "leader", "node"]
    .map(
      (table) => `CREATE CONSTRAINT TRIGGER fail_some AFTER INSERT OR UPDATE OR DELETE ON baton.${table}
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.fail_some();`,
    )
    .join("\n")}`;

it("a cluster lives through a server that rolls back, or takes no writes", async (t) => {
  const cluster = await TestCluster.open(t, { settings: SHORT_LEASES, server: { durable: true } });
  const [ada] = await cluster.startAll("ada", "bob");
  assert.ok(ada);
  const { epoch } = await cluster.leader();

  await t.test(
    "every third commit is rolled back: it is run again, and each job has its effect once",
    async (t) => {
      const ledger = join(await dataDirectory(t), "runs");
      await cluster.sql(ROLL_BACK);
      const callers = await underLoad(t, cluster, { payload: () => ({ ms: 2, ledger }) });
      await eventually("enough to be done", async () => callers.acknowledged.size > 150, 30_000);
      await callers.stop();
      await ada.idle();
      const [row] = await cluster.sql("SELECT last_value::int AS aborts FROM public.aborts");
      t.diagnostic(
        `${callers.acknowledged.size} acknowledged, ${callers.refusals} refused, ${String(row!["aborts"])} commits were rolled back`,
      );
      assert.ok((row!["aborts"] as number) > 50);
      const runs = (await readFile(ledger, "utf8")).trim().split("\n");
      const ids = runs.map((line) => line.split(":", 1)[0]);
      assert.equal(new Set(ids).size, ids.length, "a job had its effect twice");
      const jobs = await ada.allJobs();
      assert.ok(jobs.every(({ attempts, failures, crashes }) => attempts === 1 && failures + crashes === 0));
      assert.equal((await cluster.leader()).epoch, epoch, "a renewal that was rolled back is sent again");
      await cluster.sql("DROP FUNCTION public.fail_some CASCADE");
      await audit(cluster, callers);
    },
  );

  await t.test(
    "a server that became a standby: nobody leads, reads are answered, and nobody starts on it",
    async (t) => {
      const callers = await underLoad(t, cluster);
      const { epoch } = await cluster.leader();
      const { job_id } = await ada.does({ task: "work", payload: { ms: 0 } });

      const [row] = await cluster.sql("SHOW data_directory");
      await cluster.server.halt("fast");
      await writeFile(join(row!["data_directory"] as string, "standby.signal"), "");
      await cluster.server.relaunch();
      const demotedAt = systemClock.monotonic();
      const watch = new LeaderClaims(t, () => cluster.nodes);
      for (const node of cluster.nodes.values()) {
        const refused = await node.post("/jobs", { task: "work", payload: { ms: 0 } });
        assert.equal(refused.status, 503);
        assert.ok(refused.headers.get("retry-after"));
        assert.match((refused.body as Refusal).message, /read-only transaction|during recovery/);
        assert.equal((await node.client.job(job_id)).status, "completed", "reads are answered");
      }
      const data = await dataDirectory(t);
      const late = NodeProcess.spawn(t, {
        data,
        name: "cyd",
        settings: { STORE: cluster.url, ...SHORT_LEASES },
      });
      assert.equal((await late.exited).code, 78, late.stderr);
      assert.match(
        late.stderr,
        /error: the database server.* is in recovery: a standby takes no writes.*URL of the primary/,
      );
      await systemClock.sleep(Math.max(0, demotedAt + LEASE_MS - systemClock.monotonic()));
      assert.deepEqual(watch.between(demotedAt, Infinity), [], "somebody led on a standby");

      await cluster.sql("SELECT pg_promote()");
      const next = await recovered(cluster);
      t.diagnostic(`a leader ${next.ms.toFixed(0)} ms after the promotion`);
      assert.ok(next.epoch > epoch && next.epoch <= epoch + 2, `epoch ${epoch} became ${next.epoch}`);
      await audit(cluster, callers);
      watch.assertOneAtATime();
    },
  );
});
