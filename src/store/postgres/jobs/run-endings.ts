/** How single jobs leave `live`: into `done`, or back into their queue. Each is one statement for a whole batch. */

import { type Queryable, write } from "../../../platform/drivers/postgres/postgres.ts";
import { int4s, int8s, texts } from "../../../platform/drivers/postgres/arrays.ts";
import type { RunChange } from "../../../core/jobs/run-end.ts";
import { NOW } from "./store-cache.ts";
import { PAST_EPOCHS_KEPT } from "../../jobs.ts";
import { STATUS } from "../../job-row.ts";

/** The next state of one job of `live`. */
export interface Applied {
  readonly seq: number;
  readonly change: RunChange;
  readonly result: string | null;
  /** The run was taken from its claimant, which may still report: the epoch is raised now and not with the next claim. */
  readonly taken: boolean;
  readonly author: number | null;
  /** The owner, by the number of its name; left out or null if it is not recorded. */
  readonly owner?: { readonly name: number; readonly epoch: number } | null;
}

/** Columns of `done` that are copied from `live`. */
const KEPT = "run_at, started_at, worker, lease, logs, progress, progress_message";

const END = write(
  "runs-end",
  `WITH clock AS MATERIALIZED (SELECT ${NOW} AS now),
   gone AS (
     DELETE FROM baton.live l
     USING unnest($2::bigint[], $3::int[], $4::text[], $5::text[], $6::int[], $7::int[], $8::int[], $9::int[], $10::int[], $11::text[], $12::int[],
         $13::int[], $14::int[])
       AS a (seq, status, ended_by, result, taken, attempts, failures, interruptions, crashes, killed, author, owner, owner_epoch)
     WHERE l.seq = a.seq
     RETURNING l.seq, l.id, l.kind, l.run_at, l.started_at, l.worker, l.lease, l.logs, l.progress, l.progress_message,
       l.cancel_requested, l.job_epoch + a.taken AS job_epoch, l.attempts + a.attempts AS attempts,
       l.failures + a.failures AS failures, l.interruptions + a.interruptions AS interruptions,
       l.crashes + a.crashes AS crashes, coalesce(a.killed, l.killed) AS killed, coalesce(a.author, l.author) AS author,
       a.status, a.ended_by, a.result, a.owner, a.owner_epoch, l.assignment
   ),
   kept AS (
     INSERT INTO baton.done (seq, id, finished_at, status, error, result, job_epoch, attempts, failures, interruptions, crashes, killed, author, cancel_requested, ${KEPT}, owner, owner_epoch, assignment, kind)
     SELECT seq, id, (SELECT now FROM clock), status, ended_by, result, job_epoch, attempts, failures, interruptions, crashes, killed, author, cancel_requested, ${KEPT}, owner, owner_epoch, assignment, kind
     FROM gone
   )
   INSERT INTO baton.tally (kind, status, n) SELECT kind, status, count(*) FROM gone GROUP BY kind, status`,
);

/** `kept_runs` has the values of a row before this statement changes it; without an outcome it is not a run. */
const RETURN = write(
  "runs-return",
  `WITH clock AS MATERIALIZED (SELECT ${NOW} AS now),
   kept_runs AS (
     INSERT INTO baton.past_run (seq, job_epoch, started_at, ended_at, worker, author, assignment, outcome, error)
     SELECT l.seq, l.job_epoch, l.started_at, (SELECT now FROM clock), l.worker, l.author, l.assignment, a.outcome, a.error
     FROM baton.live l JOIN unnest($2::bigint[], $4::text[], $13::text[]) AS a (seq, error, outcome) ON l.seq = a.seq
     WHERE l.started_at IS NOT NULL AND a.outcome IS NOT NULL
     ON CONFLICT DO NOTHING
     RETURNING seq, job_epoch
   ),
   forgotten_runs AS (
     DELETE FROM baton.past_run p USING kept_runs k WHERE p.seq = k.seq AND p.job_epoch < k.job_epoch - ${PAST_EPOCHS_KEPT}
   )
   UPDATE baton.live l SET worker = NULL, started_at = NULL, assignment = NULL, updated_at = (SELECT now FROM clock),
     run_at = coalesce((SELECT now FROM clock) + a.delay_ms, l.run_at), later = coalesce(a.delay_ms > 0, false),
     job_epoch = l.job_epoch + a.taken, attempts = l.attempts + a.attempts, failures = l.failures + a.failures,
     interruptions = l.interruptions + a.interruptions, crashes = l.crashes + a.crashes,
     lease = CASE WHEN a.taken > 0 THEN NULL ELSE l.lease END, suspect = coalesce(a.suspect = 1, l.suspect),
     error = coalesce(a.error, l.error), killed = coalesce(a.killed, l.killed), author = coalesce(a.author, l.author)
   FROM unnest($2::bigint[], $3::bigint[], $4::text[], $5::int[], $6::int[], $7::int[], $8::int[], $9::int[], $10::text[], $11::int[], $12::int[])
     AS a (seq, delay_ms, error, taken, attempts, failures, interruptions, crashes, killed, author, suspect)
   WHERE l.seq = a.seq`,
);

/** Inside a transaction that has locked the rows. */
export async function applyChanges(
  tx: Queryable,
  all: readonly Applied[],
  now: number | null,
): Promise<void> {
  const endings = all.filter(({ change }) => change.end);
  const returns = all.filter(({ change }) => !change.end);
  if (endings.length > 0) {
    await tx.query(END, [
      now,
      int8s(endings.map(({ seq }) => seq)),
      int4s(endings.map(({ change }) => STATUS[change.end!.status])),
      texts(endings.map(({ change }) => json(change.end!.error))),
      texts(endings.map(({ result }) => result)),
      ...charges(endings),
      int4s(endings.map(({ owner }) => owner?.name ?? null)),
      int4s(endings.map(({ owner }) => owner?.epoch ?? null)),
    ]);
  }
  if (returns.length > 0) {
    await tx.query(RETURN, [
      now,
      int8s(returns.map(({ seq }) => seq)),
      int8s(returns.map(({ change }) => change.delayMs)),
      texts(returns.map(({ change }) => json(change.error))),
      ...charges(returns),
      int4s(returns.map(({ change: { suspect } }) => (suspect === null ? null : Number(suspect)))),
      texts(returns.map(({ change }) => change.past)),
    ]);
  }
}

function charges(all: readonly Applied[]): Buffer[] {
  return [
    int4s(all.map(({ taken }) => Number(taken))),
    int4s(all.map(({ change }) => change.spent.attempts)),
    int4s(all.map(({ change }) => change.spent.failures)),
    int4s(all.map(({ change }) => change.spent.interruptions)),
    int4s(all.map(({ change }) => change.spent.crashes)),
    texts(all.map(({ change }) => json(change.killed))),
    int4s(all.map(({ author }) => author)),
  ];
}

function json(value: unknown): string | null {
  return value === null ? null : JSON.stringify(value);
}
