/** A worker's own claim: merges the heads of the queues from which it may take. */

import { takesFrom } from "../../../../core/push/dispatch.ts";
import type { Statement } from "../../../../platform/drivers/postgres/postgres.ts";
import { int4s } from "../../../../platform/drivers/postgres/arrays.ts";
import type { Claimed, ClaimedJob, ClaimRequest } from "../../../store.ts";
import { fencedClaim } from "./fenced-claim.ts";
import { makeLease, openLease, PROLONG_LEASE, startRun } from "./leases.ts";
import { type StoreCache, NOW } from "../store-cache.ts";
import {
  CONTENDED,
  CONTENDED_TRIES,
  claimValues,
  heads,
  kinds,
  lines,
  mayHaveMore,
  picked,
  promoteAnd,
  REST,
  RowsWanted,
  SLICE,
  suspects,
  WAITING_LINES,
} from "./queue-order.ts";
import {
  COUNTERS,
  NO_JOB,
  type Row,
  SHAPE,
  type Shape,
  ClaimedRows,
  claimedRanges,
  claimedRows,
} from "./claimed-rows.ts";
import type { PostgresScripts } from "../../scripts.ts";

/**
 * The lease is held against a recovery from before the end of the statement (FOR KEY SHARE), but only if something was
 * picked: most claims that find nothing write nothing, and wait for no disk.
 */
export const CLAIM: Statement = {
  name: "claim",
  readOnly: false,
  arrays: true,
  text: `
  WITH clock AS MATERIALIZED (SELECT ${NOW} AS now),
  ${openLease("$10")},
  ${kinds("$4", "$5", "$11", "EXISTS (SELECT FROM open)")},
  ${lines()},
  ${picked(`(${heads("$12::int")}) UNION ALL (${suspects("CASE WHEN $7::boolean THEN 1 ELSE 0 END")})`, "$6::int")},
  held AS MATERIALIZED (
    SELECT e.id FROM baton.lease e WHERE e.id = (SELECT id FROM open) AND EXISTS (SELECT FROM picked) FOR KEY SHARE
  ),
  taken AS (
    UPDATE baton.live l SET ${startRun("$8", "$9")}, assignment = NULL, ${SLICE}
    FROM held WHERE l.ctid = ANY (ARRAY(SELECT at FROM picked))
    RETURNING l.seq, l.id, l.n, l.run_at, l.job_epoch, l.attempts, l.failures, l.interruptions, l.crashes
  ),
  ${REST},
  ${PROLONG_LEASE}
  ${claimedRows(13, "NULL::boolean, NULL::boolean")}
  UNION ALL
  SELECT ${NO_JOB},
    EXISTS (SELECT FROM open) AND (EXISTS (SELECT FROM held) OR NOT EXISTS (SELECT FROM picked)), ${CONTENDED}
  WHERE NOT EXISTS (SELECT FROM taken)`,
};

/**
 * The same claim where nothing is unusual: nothing has become due since it was submitted, nobody is suspect, no queue is paused,
 * the lease needs no prolonging. A job that comes alone starts sooner by a third of the two statements above. Where nothing is
 * unusual and nothing waits either, it says so, and one statement is all that an idle worker costs. Whatever else is the case, it
 * takes nothing, and the long way is gone. Kinds are never removed, so who knows as many as there are knows them all.
 */
const quick = (name: string, rows: string): Statement => ({
  name,
  readOnly: false,
  arrays: true,
  text: `
  WITH clock AS MATERIALIZED (
    SELECT ${NOW} AS now, (SELECT min(run_at) FROM baton.live WHERE later) AS next_at
  ),
  usual AS MATERIALIZED (
    SELECT FROM clock WHERE coalesce(next_at > now, true)
      AND (SELECT count(*) FROM baton.kind) = $5::int
      AND NOT EXISTS (SELECT FROM baton.queue WHERE paused)
      AND NOT EXISTS (SELECT FROM baton.live l WHERE l.suspect AND NOT l.later)
  ),
  kinds AS MATERIALIZED (SELECT id FROM unnest($4::int[]) AS kinds (id) WHERE EXISTS (SELECT FROM usual)),
  ${WAITING_LINES},
  held AS MATERIALIZED (
    SELECT e.id FROM clock CROSS JOIN baton.lease e
    WHERE e.name = $2 AND e.expires_at >= clock.now + $3::bigint AND EXISTS (SELECT FROM lines)
    FOR KEY SHARE OF e
  ),
  ${picked(heads("$9::int", "EXISTS (SELECT FROM held)"), "$6::int")},
  taken AS (
    UPDATE baton.live l SET ${startRun("$7", "$8")}, assignment = NULL, ${SLICE}
    FROM held WHERE l.ctid = ANY (ARRAY(SELECT at FROM picked))
    RETURNING l.seq, l.id, l.n, l.run_at, l.job_epoch, l.attempts, l.failures, l.interruptions, l.crashes
  ),
  ${REST}
  ${rows}
  UNION ALL
  SELECT ${NO_JOB}, EXISTS (SELECT FROM usual) AND NOT EXISTS (SELECT FROM lines),
    (SELECT count(*) FROM baton.kind) <> $5::int, next_at - now
  FROM clock WHERE NOT EXISTS (SELECT FROM taken)`,
});
const QUICK_MORE = "NULL::boolean, NULL::boolean, (SELECT next_at - now FROM clock)";
export const CLAIM_QUICK = quick(
  "claim-quick",
  `SELECT t.seq, j.id, j.payload, j.created_at, t.run_at, ${SHAPE}, ${COUNTERS}, NULL::smallint, ${QUICK_MORE}
  FROM taken t JOIN baton.job j ON j.id = t.id WHERE t.n = 1
  UNION ALL ${claimedRanges(SHAPE, QUICK_MORE)}`,
);
/** The rows of a large claim are what it costs, and not its statement: those of the expected shape are shorter. */
export const CLAIM_MANY = quick("claim-many", claimedRows(10, QUICK_MORE));
const MANY = 128;

type ClaimRow = [
  ...row: Row,
  /** These two only in the one row that stands for no job. */
  held: boolean | null,
  contended: boolean | null,
];

/** Without a job, the two are whether nothing waits, and whether there are kinds that we do not know. */
type QuickRow = [...row: ClaimRow, nextDueInMs: number | null];

interface Claimant {
  readonly author: number;
  readonly worker: number;
}

/** One statement's answer, and whether another one may find more. */
interface Piece extends Claimed {
  readonly more: boolean;
}

export class Claim {
  readonly #cache: StoreCache;
  readonly #rows: ClaimedRows;
  readonly #wanted = new RowsWanted();
  readonly #fenced: ReturnType<typeof fencedClaim>;

  constructor(cache: StoreCache, scripts: PostgresScripts) {
    this.#cache = cache;
    this.#rows = new ClaimedRows(cache);
    this.#fenced = fencedClaim(cache, scripts);
  }

  /** An error means that jobs may have been claimed, also by the first of several statements: the lease must be given up. */
  async run(request: ClaimRequest): Promise<Claimed> {
    if (request.fence) return this.#fenced(request, request.fence);
    const by: Claimant = {
      author: await this.#cache.authorId(request.author),
      worker: await this.#cache.nameId(request.worker),
    };
    let { jobs, held, nextDueInMs, more } = await this.#piece(request, by);
    while (more && jobs.length < request.limit) {
      const rest = { ...request, limit: request.limit - jobs.length, suspect: false, opens: false };
      const next = await this.#piece(rest, by);
      jobs = [...jobs, ...next.jobs];
      ({ more } = next);
    }
    return { jobs, held, nextDueInMs };
  }

  async #piece(request: ClaimRequest, by: Claimant): Promise<Piece> {
    const cache = this.#cache;
    const quick = await this.#quick(request, by);
    if (quick) return quick;
    for (let tries = 1; ; tries++) {
      const { expected } = this.#rows;
      const wanted = this.#wanted.for(request.limit);
      const values = [...claimValues(request, by), wanted, ...expected];
      const [rows, nextDueInMs] = await promoteAnd<ClaimRow>(cache, CLAIM, values);
      if (rows[0]![0] !== null)
        return { ...(await this.#taken(rows, wanted, request, expected)), nextDueInMs };
      const [held, contended] = rows[0]!.slice(-2);
      if (!held && request.opens && (await makeLease(cache, request))) continue;
      if (!held || !contended || tries === CONTENDED_TRIES)
        return { jobs: [], held: held === true, nextDueInMs, more: false };
    }
  }

  async #taken(
    rows: readonly (readonly [...Row, ...unknown[]])[],
    wanted: number,
    request: ClaimRequest,
    expected: Shape,
  ): Promise<Pick<Piece, "jobs" | "held" | "more">> {
    const jobs = await this.#rows.jobs(rows, expected, claimedBy(request));
    const used = rows.reduce((count, row) => count + (row[1] === null ? 0 : 1), 0);
    this.#wanted.learn(used, jobs.length);
    return { jobs, held: true, more: mayHaveMore(used, wanted) };
  }

  async #quick(request: ClaimRequest, by: Claimant): Promise<Piece | null> {
    const { lease, leaseMs, limit } = request;
    const cache = this.#cache;
    const kinds = cache.allKinds();
    if (!kinds || limit <= 0) return null;
    const served = kinds.filter((kind) => takesFrom(request, kind));
    const wanted = this.#wanted.for(limit);
    const { expected } = this.#rows;
    const rows = await cache.db.query<QuickRow>(limit > MANY ? CLAIM_MANY : CLAIM_QUICK, [
      cache.now(),
      lease,
      leaseMs,
      int4s(served.map(({ id }) => id)),
      kinds.length,
      limit,
      by.worker,
      by.author,
      wanted,
      ...(limit > MANY ? expected : []),
    ]);
    const [seq, , , , , , , , idle, incomplete, nextDueInMs] = rows[0]!;
    if (incomplete) await cache.learnAllKinds();
    if (seq !== null) return { ...(await this.#taken(rows, wanted, request, expected)), nextDueInMs };
    // A claimant that holds jobs learns the long way whether its lease is still there.
    return idle && (request.opens || request.hasSlot)
      ? { jobs: [], held: true, nextDueInMs, more: false }
      : null;
  }
}

function claimedBy({ lease, author }: ClaimRequest): Pick<ClaimedJob, "lease" | "leaderEpoch"> {
  return { lease, leaderEpoch: author.leaderEpoch };
}
