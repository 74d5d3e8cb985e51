/**
 * Turns dispatched jobs into runs, under the lease of the worker that accepts them. Jobs whose mark is gone, or that
 * another worker has accepted, are not accepted.
 */

import { write } from "../../../platform/drivers/postgres/postgres.ts";
import { int4s, int8s } from "../../../platform/drivers/postgres/arrays.ts";
import type { OwnershipStore } from "../../ownership.ts";
import { makeLease, openLease, PROLONG_LEASE, startRun } from "../jobs/claim/leases.ts";
import { type StoreCache, NOW } from "../jobs/store-cache.ts";
import { completedVerdicts, type Settle } from "../jobs/settle.ts";

/**
 * Compare-and-set: the mark and the epoch are checked again if the statement had to wait for a row. The runs are in the
 * order of their numbers, so that two calls cannot deadlock.
 */
const ACCEPT = write(
  "accept",
  `WITH clock AS MATERIALIZED (SELECT ${NOW} AS now),
   ${openLease("$6")},
   held AS MATERIALIZED (SELECT e.id FROM baton.lease e WHERE e.id = (SELECT id FROM open) FOR KEY SHARE),
   taken AS (
     UPDATE baton.live l SET ${startRun("$4", "$5")}
     FROM held CROSS JOIN unnest($7::bigint[], $8::int[], $9::bigint[]) AS a (seq, job_epoch, assignment)
     WHERE l.seq = a.seq AND l.job_epoch = a.job_epoch - 1 AND l.assignment = a.assignment AND l.n = 1 AND l.started_at IS NULL
     RETURNING l.seq
   ),
   ${PROLONG_LEASE}
   SELECT EXISTS (SELECT FROM held) AS held,
     CASE WHEN (SELECT count(*) FROM taken) < $10::int THEN ARRAY(SELECT seq::text FROM taken) END AS accepted`,
);

interface Row {
  readonly held: boolean;
  /** Null for all. */
  readonly accepted: readonly string[] | null;
}

export function acceptRuns(cache: StoreCache, settle: Settle): OwnershipStore["accept"] {
  return async (request) => {
    const author = await cache.authorId(request.author);
    const worker = await cache.nameId(request.worker);
    const seqs = await settle.seqs(request.runs);
    const runs = request.runs
      .map(({ jobEpoch, assignment }, at) => ({ seq: seqs[at]!, jobEpoch, assignment }))
      .sort((a, b) => (a.seq ?? 0) - (b.seq ?? 0));
    for (;;) {
      const [row] = await cache.db.query<Row>(ACCEPT, [
        cache.now(),
        request.lease,
        request.leaseMs,
        worker,
        author,
        request.opens,
        int8s(runs.map(({ seq }) => seq)),
        int4s(runs.map(({ jobEpoch }) => jobEpoch)),
        int8s(runs.map(({ assignment }) => assignment)),
        runs.length,
      ]);
      const { held, accepted } = row!;
      if (!held && request.opens && (await makeLease(cache, request))) continue;
      return { held, accepted: completedVerdicts(seqs, accepted).map((verdict) => verdict !== null) };
    }
  };
}
