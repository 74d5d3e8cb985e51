/** The verdict: what was promised, what the database holds, what its triggers saw, and what the handlers noted are compared. */

import assert from "node:assert/strict";
import { LATE } from "./late-writes.ts";
import type { Expected } from "./load.ts";
import { readRuns } from "./run-notes.ts";
import type { Witness } from "./witness.ts";

export interface AuditOptions {
  readonly witness: Witness;
  readonly acknowledged: ReadonlyMap<string, Expected & { readonly id: string }>;
  /** The directory of the handlers' notes. */
  readonly notes: string;
}

export interface AuditReport {
  readonly jobs: number;
  /** How many jobs were begun so many times. */
  readonly begun: ReadonlyMap<number, number>;
  readonly claims: number;
  readonly crashes: number;
  readonly released: number;
  readonly failures: number;
  readonly grants: number;
  readonly writes: number;
  readonly linesTwice: number;
}

interface JobRow {
  readonly id: string;
  readonly key: string | null;
  readonly task: string;
  readonly status: number | null;
  readonly jobEpoch: number;
  readonly attempts: number;
  readonly failures: number;
  readonly interruptions: number;
  readonly crashes: number;
  readonly result: string | null;
  readonly error: string | null;
  /** By the triggers: runs begun, the highest of them, runs that ended without ending the job, ends of the job. */
  readonly claimed: number;
  readonly highest: number;
  readonly epochs: number;
  readonly returned: number;
  readonly ended: number;
  /** Different lines of log of the run that counts, and all of them. */
  readonly said: number;
  readonly lines: number;
}

const JOBS = `
  WITH wrote AS (
    SELECT seq, count(*) FILTER (WHERE what = 'claimed')::int AS claimed, max(job_epoch) FILTER (WHERE what = 'claimed') AS highest,
      count(DISTINCT job_epoch) FILTER (WHERE what = 'claimed')::int AS epochs,
      count(*) FILTER (WHERE what = 'returned')::int AS returned, count(*) FILTER (WHERE what = 'ended')::int AS ended
    FROM audit.wrote WHERE seq IS NOT NULL GROUP BY seq
  ), said AS (
    SELECT l.seq, count(DISTINCT l.message)::int AS said, count(*)::int AS lines
    FROM baton.log l JOIN baton.done d ON d.seq = l.seq AND d.job_epoch = l.job_epoch GROUP BY l.seq
  )
  SELECT b.name || '-' || j.id AS id, j.idempotency_key AS key, k.task, d.status, d.job_epoch AS "jobEpoch", d.attempts, d.failures,
    d.interruptions, d.crashes, d.result, d.error, w.claimed, w.highest, w.epochs, w.returned, w.ended,
    coalesce(s.said, 0) AS said, coalesce(s.lines, 0) AS lines
  FROM baton.job j JOIN baton.name b ON b.id = j.birthplace JOIN baton.kind k ON k.id = j.kind
  LEFT JOIN baton.done d ON d.seq = j.seq LEFT JOIN wrote w ON w.seq = j.seq LEFT JOIN said s ON s.seq = j.seq
  ORDER BY j.seq`;

const STATUS = { completed: 3, failed: 4 } as const;

export async function audit({ witness, acknowledged, notes }: AuditOptions): Promise<AuditReport> {
  const rows = await witness.sql<JobRow>(JOBS);
  const byKey = new Map(rows.map((row) => [row.key, row]));
  assert.equal(byKey.size, rows.length, "an idempotency key made two jobs");
  assert.equal(rows.length, acknowledged.size, "as many jobs as were acknowledged");
  const runs = readRuns(notes);
  for (const [key, expected] of acknowledged) assertEnded(byKey.get(key), expected, runs);
  assert.deepEqual(await witness.counts(), { waiting: 0, running: 0, ended: rows.length });

  assert.deepEqual(
    await witness.stale(),
    [],
    "writes of an old term were committed after a newer one was granted",
  );
  const [grants] = await witness.sql<{
    n: number;
    epochs: number;
    undated: number;
    stolen: number;
    writes: number;
  }>(`
    SELECT count(*)::int AS n, count(DISTINCT epoch)::int AS epochs,
      count(*) FILTER (WHERE pg_xact_commit_timestamp(xmin) IS NULL)::int AS undated,
      (SELECT count(*)::int FROM audit.wrote WHERE what = 'stolen') AS stolen, (SELECT count(*)::int FROM audit.wrote) AS writes
    FROM audit.granted WHERE role = 'scheduler'`);
  assert.equal(grants!.epochs, grants!.n, "no epoch is granted twice");
  assert.equal(grants!.undated, 0, "the server notes when it commits");
  assert.equal(grants!.stolen, 0, "no run was given to somebody else while it ran");
  const late = await witness.sql(`
    SELECT 'result' AS what, seq FROM baton.done WHERE concat(result, error) LIKE '%${LATE}%'
    UNION ALL SELECT 'log', seq FROM baton.log WHERE message LIKE '%${LATE}%'`);
  assert.deepEqual(late, [], "something was stored that was said too late");

  const begun = new Map<number, number>();
  for (const { id } of rows) {
    const times = runs.get(id)?.size ?? 0;
    begun.set(times, (begun.get(times) ?? 0) + 1);
  }
  const sum = (of: (row: JobRow) => number): number => rows.reduce((total, row) => total + of(row), 0);
  return {
    jobs: rows.length,
    begun,
    claims: sum(({ claimed }) => claimed),
    crashes: sum(({ crashes }) => crashes),
    failures: sum(({ failures }) => failures),
    released: sum(({ claimed, attempts }) => claimed - attempts),
    grants: grants!.n,
    writes: grants!.writes,
    linesTwice: sum(({ lines, said }) => lines - said),
  };
}

function assertEnded(
  row: JobRow | undefined,
  expected: Expected & { readonly id: string },
  runs: ReadonlyMap<string, ReadonlyMap<number, number>>,
): void {
  const facts = JSON.stringify({ expected, row });
  assert.ok(row, `lost: ${facts}`);
  assert.equal(row.id, expected.id, `acknowledged under another id: ${facts}`);
  assert.equal(row.task, expected.task, facts);
  assert.equal(row.status, STATUS[expected.status], `it did not end as it should: ${facts}`);
  assert.equal(row.failures, expected.failures, `a failure was not counted once: ${facts}`);
  assert.equal(row.ended, 1, `its end was written more than once: ${facts}`);
  assert.equal(row.epochs, row.claimed, `a job_epoch was given out twice: ${facts}`);
  assert.equal(row.jobEpoch, row.highest, `the result that counts is not of its last run: ${facts}`);
  assert.equal(row.claimed, row.returned + row.ended, `every run ends once: ${facts}`);
  if (expected.status === "completed")
    assert.deepEqual(
      JSON.parse(row.result ?? "null"),
      { epoch: row.jobEpoch },
      `another run's result: ${facts}`,
    );
  assert.equal(row.said, expected.lines, `lines of the log are missing: ${facts}`);
  const noted = runs.get(row.id) ?? new Map<number, number>();
  assert.ok(noted.has(row.jobEpoch), `the run that counts was never begun: ${facts}`);
  for (const [epoch, times] of noted) {
    assert.equal(times, 1, `run ${epoch} was begun ${times} times: ${facts}`);
    assert.ok(epoch <= row.highest, `run ${epoch} was never given out: ${facts}`);
  }
}
