/** The marks of a leader on due jobs: sets them, removes them after a timeout, and counts them. */

import type { LeaseId } from "../../../core/ids.ts";
import type { Clock } from "../../../platform/clock.ts";
import { read, type Statement, write } from "../../../platform/drivers/postgres/postgres.ts";
import { int8s, texts } from "../../../platform/drivers/postgres/arrays.ts";
import type { DispatchedAssignment, DispatchedJob, OwnershipStore } from "../../ownership.ts";
import { type StoreCache, NOW } from "../jobs/store-cache.ts";
import {
  heads,
  IN_ORDER,
  kinds,
  lines,
  picked,
  promoteAnd,
  REST,
  suspects,
} from "../jobs/claim/queue-order.ts";
import { NO_JOB, type Row, ClaimedRows, claimedRows } from "../jobs/claim/claimed-rows.ts";
import type { PostgresScripts } from "../scripts.ts";
import { fenceFrom, termValues } from "../terms.ts";
import { scanTable } from "../jobs/table-scan.ts";

/** Jobs that are marked run under nobody's lease yet. */
const NOBODY = { lease: "" as LeaseId, leaderEpoch: 0 };

/**
 * One statement is the whole transaction and locks the term. Each job that is marked gets a row of its own. Suspects are numbered separately, so that each has its own
 * assignment.
 */
const DISPATCH: Statement = {
  name: "dispatch",
  readOnly: false,
  arrays: true,
  text: `
  WITH clock AS MATERIALIZED (SELECT ${NOW} AS now),
  ${fenceFrom(2)},
  ${kinds("$6", "$7", "$8", "EXISTS (SELECT FROM fence)")},
  ${lines("l.assignment IS NULL", "$9::int")},
  ${picked(`(${heads("$9::int", "l.assignment IS NULL")}) UNION ALL (${suspects("CASE WHEN $10::boolean THEN 1 ELSE 0 END", "l.assignment IS NULL")})`, "$9::int")},
  job AS MATERIALIZED (
    SELECT at, place, suspect, row_number() OVER (PARTITION BY suspect ${IN_ORDER}, place) - 1 AS nth
    FROM picked CROSS JOIN LATERAL generate_series(0, n - 1) AS place
  ),
  marked AS MATERIALIZED (
    SELECT at, place, max(made) OVER (PARTITION BY suspect, nth / $11::int) AS assignment FROM (
      SELECT at, place, suspect, nth, CASE WHEN nth % $11::int = 0 THEN nextval('baton.assignment_seq') END AS made FROM job
    ) AS numbered
  ),
  first_ones AS (
    UPDATE baton.live l SET assignment = marked.assignment, n = 1 FROM marked WHERE l.ctid = marked.at AND marked.place = 0
    RETURNING l.seq, l.id, l.n, l.run_at, l.job_epoch, l.attempts, l.failures, l.interruptions, l.crashes, l.assignment
  ),
  others AS (
    INSERT INTO baton.live (seq, id, run_at, updated_at, kind, author, priority, later, assignment)
    SELECT l.seq + place, baton.id_at(l.id, place), l.run_at, l.updated_at, l.kind, l.author, l.priority, false, marked.assignment
    FROM marked JOIN baton.live l ON l.ctid = marked.at WHERE place > 0 AND l.seq IN (SELECT seq FROM first_ones)
    RETURNING seq, id, n, run_at, job_epoch, attempts, failures, interruptions, crashes, assignment
  ),
  taken AS MATERIALIZED (
    SELECT seq, id, n, run_at, job_epoch + 1 AS job_epoch, attempts + 1 AS attempts, failures, interruptions, crashes, assignment
    FROM (SELECT * FROM first_ones UNION ALL SELECT * FROM others) AS both_kinds
  ),
  ${REST},
  parts AS MATERIALIZED (SELECT assignment, array_agg(seq) AS jobs FROM taken GROUP BY assignment),
  made AS (
    INSERT INTO baton.assignment (id, leader_epoch, created_at, unowned_since, state, jobs)
    SELECT assignment, $5::bigint, clock.now, clock.now, 'unowned', jobs FROM clock, parts
  )
  ${claimedRows(12, "NULL::bigint, NULL::boolean")}
  UNION ALL
  SELECT NULL, NULL, array_to_string(jobs, ' '), NULL, NULL, NULL, NULL, NULL, assignment, NULL FROM parts
  UNION ALL
  SELECT ${NO_JOB}, NULL, true WHERE NOT EXISTS (SELECT FROM fence)`,
};

type DispatchRow = [
  ...row: Row,
  /** In a row without a job, whose payload contains the numbers of the jobs. */
  assignment: number | null,
  fenced: boolean | null,
];

/** The jobs `l` of an assignment `s` that no worker has accepted. `OFFSET 0` keeps the planner from reversing the join. */
const MARKED = `baton.assignment s CROSS JOIN LATERAL unnest(s.jobs) AS j (seq) CROSS JOIN LATERAL (
    SELECT seq, kind FROM baton.live WHERE seq = j.seq AND assignment = s.id AND started_at IS NULL OFFSET 0
  ) AS l`;
const OLD = read(
  "undispatch-old",
  `SELECT l.seq, s.id AS assignment FROM ${MARKED} WHERE s.created_at <= ${NOW} - $2::bigint`,
);
/** Marks whose assignment is gone, so that they are not found by it. This should not happen, so the check is rare. */
const ASTRAY = read(
  "undispatch-astray",
  `SELECT l.seq, l.assignment FROM baton.live l
   WHERE l.assignment IS NOT NULL AND l.started_at IS NULL AND NOT EXISTS (SELECT FROM baton.assignment s WHERE s.id = l.assignment)`,
);
/** Checked again: a job may have been accepted, or marked again, since it was found. */
const UNDISPATCH = write(
  "undispatch",
  `UPDATE baton.live l SET assignment = NULL FROM unnest($1::bigint[], $2::bigint[]) AS a (seq, assignment)
   WHERE l.seq = a.seq AND l.assignment = a.assignment AND l.started_at IS NULL RETURNING l.kind`,
);
const OUTSTANDING = read("outstanding", `SELECT l.kind, count(*) AS jobs FROM ${MARKED} GROUP BY l.kind`);

/** More often, and the scan of all waiting jobs costs the store too much for a rare case. */
const ASTRAY_EVERY_MS = 60_000;
/** A scan of many jobs takes longer; it never takes more than this part of the time. */
const ASTRAY_SHARE = 1 / 50;

interface KindCount {
  readonly kind: number;
  readonly jobs: number;
}

interface Mark {
  readonly seq: number;
  readonly assignment: number;
}

export function dispatches(
  cache: StoreCache,
  scripts: PostgresScripts,
  clock: Clock,
): Pick<OwnershipStore, "dispatch" | "undispatch"> {
  const { db } = cache;
  const claimed = new ClaimedRows(cache);
  let astrayAt = -Infinity;

  const astray = async (): Promise<readonly Mark[]> => {
    const startedAt = clock.monotonic();
    if (startedAt < astrayAt) return [];
    try {
      return await db.transaction((tx) => scanTable<Mark>(tx, ASTRAY));
    } finally {
      const tookMs = clock.monotonic() - startedAt;
      astrayAt = startedAt + Math.max(ASTRAY_EVERY_MS, tookMs / ASTRAY_SHARE);
    }
  };

  const byQueue = async (counts: readonly KindCount[]): Promise<ReadonlyMap<string, number>> => {
    await cache.learnKinds(new Set(counts.map(({ kind }) => kind)));
    const queues = new Map<string, number>();
    for (const { kind, jobs } of counts) {
      const { queue } = cache.kind(kind);
      queues.set(queue, (queues.get(queue) ?? 0) + jobs);
    }
    return queues;
  };

  return {
    dispatch: async (request, fence) => {
      const { expected } = claimed;
      const [rows, nextDueInMs] = await promoteAnd<DispatchRow>(cache, DISPATCH, [
        ...termValues(fence),
        texts([...request.tasks]),
        request.queues && texts([...request.queues]),
        texts([...request.exceptQueues]),
        Math.max(request.limit, 0),
        request.suspect,
        Math.max(request.size, 1),
        ...expected,
      ]);
      if (rows[0]?.[9]) throw await scripts.refusal(fence);
      const jobs = (await claimed.jobs(rows, expected, NOBODY)).map(
        ({ lease: _lease, leaderEpoch: _epoch, ...job }) => job,
      );
      return { assignments: inParts(rows, jobs), nextDueInMs };
    },
    /** The reads are outside the transaction, where they would delay the grant to the next leader. */
    undispatch: async (olderThanMs, fence) => {
      const old = [...(await db.query<Mark>(OLD, [cache.now(), olderThanMs])), ...(await astray())];
      old.sort((a, b) => a.seq - b.seq);
      const freed = await scripts.transaction(async (tx) => {
        if (old.length === 0) return [];
        const values = [int8s(old.map(({ seq }) => seq)), int8s(old.map(({ assignment }) => assignment))];
        return tx.query<{ kind: number }>(UNDISPATCH, values);
      }, fence);
      const left = await db.query<KindCount>(OUTSTANDING);
      return {
        freed: await byQueue(freed.map(({ kind }) => ({ kind, jobs: 1 }))),
        outstanding: await byQueue(left),
      };
    },
  };
}

/** Each assignment with its jobs, in the order of the first of them. */
function inParts(rows: readonly DispatchRow[], jobs: readonly DispatchedJob[]): DispatchedAssignment[] {
  const assignmentOf = new Map<number, number>();
  for (const [, , seqs, , , , , , assignment] of rows) {
    if (assignment !== null) for (const seq of seqs.split(" ")) assignmentOf.set(Number(seq), assignment);
  }
  const parts = Map.groupBy(jobs, ({ ref }) => assignmentOf.get(ref as number)!);
  return [...parts].map(([id, part]) => ({ id, jobs: part }));
}
