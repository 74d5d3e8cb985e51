/**
 * The claim of a leader for an agent, under its term. Each claim has a lease of its own, so the lease is created in the
 * same statement, and only if there is a job to hold. A claim that finds no job writes nothing and waits for no disk.
 */

import type { Term } from "../../../../core/leadership/term.ts";
import type { Statement } from "../../../../platform/drivers/postgres/postgres.ts";
import { authorUnder } from "../../../jobs.ts";
import type { Claimed, ClaimRequest } from "../../../store.ts";
import { openLease, prolongLease, startRun } from "./leases.ts";
import { type StoreCache, NOW } from "../store-cache.ts";
import {
  CONTENDED,
  CONTENDED_TRIES,
  claimValues,
  heads,
  kinds,
  lines,
  picked,
  promoteAnd,
  REST,
  SLICE,
  suspects,
} from "./queue-order.ts";
import { NO_JOB, type Row, ClaimedRows, claimedRows } from "./claimed-rows.ts";
import type { PostgresScripts } from "../../scripts.ts";
import { newest, termValues } from "../../terms.ts";

/**
 * As CLAIM, but for `fence`, which is held from before anything is written, and `made`. Who has picked jobs and could not take them
 * has met another claim under the same new lease, and looks again.
 */
const CLAIM_FENCED: Statement = {
  name: "claim-fenced",
  readOnly: false,
  arrays: true,
  text: `
  WITH clock AS MATERIALIZED (SELECT ${NOW} AS now),
  ${openLease("$10")},
  may AS MATERIALIZED (
    SELECT true FROM open
    UNION ALL SELECT true WHERE $10::boolean AND NOT EXISTS (SELECT FROM baton.lease e WHERE e.name = $2)
  ),
  ${kinds("$4", "$5", "$11", "EXISTS (SELECT FROM may)")},
  ${lines()},
  ${picked(`(${heads("$6::int")}) UNION ALL (${suspects("CASE WHEN $7::boolean THEN 1 ELSE 0 END")})`, "$6::int")},
  fence AS MATERIALIZED (
    ${newest(17)} AND (EXISTS (SELECT FROM picked) OR EXISTS (SELECT FROM open)) FOR SHARE
  ),
  made AS (
    INSERT INTO baton.lease (name, expires_at) SELECT $2::text, clock.now + $3::bigint FROM clock
    WHERE EXISTS (SELECT FROM picked) AND EXISTS (SELECT FROM fence) AND NOT EXISTS (SELECT FROM open)
    ON CONFLICT DO NOTHING RETURNING id
  ),
  kept AS MATERIALIZED (
    SELECT e.id FROM baton.lease e
    WHERE e.id = (SELECT id FROM open) AND EXISTS (SELECT FROM picked) AND EXISTS (SELECT FROM fence) FOR KEY SHARE
  ),
  held AS MATERIALIZED (SELECT id FROM kept UNION ALL SELECT id FROM made),
  taken AS (
    UPDATE baton.live l SET ${startRun("$8", "$9")}, assignment = NULL, ${SLICE}
    FROM held WHERE l.ctid = ANY (ARRAY(SELECT at FROM picked))
    RETURNING l.seq, l.id, l.n, l.run_at, l.job_epoch, l.attempts, l.failures, l.interruptions, l.crashes
  ),
  ${REST},
  ${prolongLease("EXISTS (SELECT FROM fence)")}
  ${claimedRows(12, "NULL::boolean, NULL::boolean, NULL::boolean")}
  UNION ALL
  SELECT ${NO_JOB},
    EXISTS (SELECT FROM may),
    EXISTS (SELECT FROM picked) OR ${CONTENDED},
    CASE WHEN EXISTS (SELECT FROM picked) OR EXISTS (SELECT FROM open) THEN EXISTS (SELECT FROM fence)
      ELSE EXISTS (${newest(17)}) END
  WHERE NOT EXISTS (SELECT FROM taken)`,
};

type FencedRow = [
  ...row: Row,
  /** These three only in the one row that stands for no job. */
  held: boolean | null,
  contended: boolean | null,
  fenced: boolean | null,
];

export function fencedClaim(
  cache: StoreCache,
  scripts: PostgresScripts,
): (request: ClaimRequest, fence: Term) => Promise<Claimed> {
  const claimed = new ClaimedRows(cache);
  return async (request, fence) => {
    const author = await cache.authorId(authorUnder(request.author, fence));
    const worker = await cache.nameId(request.worker);
    const common = { lease: request.lease, leaderEpoch: fence.epoch };
    for (let tries = 1; ; tries++) {
      const { expected } = claimed;
      const values = [...claimValues(request, { worker, author }), ...expected, ...termValues(fence)];
      const [rows, nextDueInMs] = await promoteAnd<FencedRow>(cache, CLAIM_FENCED, values);
      const [seq, , , , , , , , held, contended, fenced] = rows[0]!;
      if (seq !== null) return { jobs: await claimed.jobs(rows, expected, common), held: true, nextDueInMs };
      if (!fenced) throw await scripts.refusal(fence);
      if (!held || !contended || tries === CONTENDED_TRIES)
        return { jobs: [], held: held === true, nextDueInMs };
    }
  };
}
