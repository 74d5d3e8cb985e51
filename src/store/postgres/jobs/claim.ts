/** A worker's own claim: merges the heads of the queues from which it may take. */

import type { Statement } from "../../../platform/drivers/postgres/postgres.ts";
import { int4s, texts } from "../../../platform/drivers/postgres/arrays.ts";
import type { Claimed, ClaimedJob, ClaimRequest } from "../../store.ts";
import { CONTENDED_TRIES, FencedClaim } from "./fenced-claim.ts";
import { makeLease, openLease, PROLONG_LEASE, startRun } from "./leases.ts";
import { type Kind, type StoreCache, NOW } from "./store-cache.ts";
import { heads, IN_ORDER, kinds, PROMOTE } from "./queue-order.ts";
import { COUNTERS, type Row, SHAPE, type Shape, ClaimedRows, claimedRows } from "./claimed-rows.ts";
import type { PostgresTerms } from "../terms.ts";

/**
 * The lease is held against a recovery from before the end of the statement (FOR KEY SHARE), but only if something was
 * picked: most claims that find nothing write nothing, and wait for no disk.
 */
const CLAIM: Statement = {
  name: "claim",
  readOnly: false,
  arrays: true,
  text: `
  WITH clock AS MATERIALIZED (SELECT ${NOW} AS now),
  ${openLease("$10")},
  ${kinds("$4", "$5", "$11", "EXISTS (SELECT FROM open)")},
  picked AS MATERIALIZED (
    SELECT at FROM (
      (${heads(false, "$6::int")})
      UNION ALL (${heads(true, "CASE WHEN $7::boolean THEN 1 ELSE 0 END")} ${IN_ORDER} LIMIT 1)
    ) AS line ${IN_ORDER} LIMIT $6::int
  ),
  held AS MATERIALIZED (
    SELECT e.id FROM baton.lease e WHERE e.id = (SELECT id FROM open) AND EXISTS (SELECT FROM picked) FOR KEY SHARE
  ),
  taken AS (
    UPDATE baton.live l SET ${startRun("$8", "$9")}, assignment = NULL
    FROM held WHERE l.ctid = ANY (ARRAY(SELECT at FROM picked))
    RETURNING l.seq, l.id, l.run_at, l.job_epoch, l.attempts, l.failures, l.interruptions, l.crashes
  ),
  ${PROLONG_LEASE}
  ${claimedRows(12, "NULL::boolean, NULL::boolean")}
  UNION ALL
  SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL,
    EXISTS (SELECT FROM open) AND (EXISTS (SELECT FROM held) OR NOT EXISTS (SELECT FROM picked)),
    CASE WHEN (SELECT count(*) FROM kinds) > 1 THEN EXISTS (
      SELECT FROM kinds CROSS JOIN LATERAL (
        SELECT FROM baton.live l WHERE l.kind = kinds.id AND NOT l.running AND NOT l.later AND NOT l.suspect LIMIT 1
      ) AS in_sight
    ) END
  WHERE NOT EXISTS (SELECT FROM taken)`,
};

/** Of a large claim the statement's own cost is a small part. */
const QUICK_LIMIT_MAX = 128;

const WAITING = "NOT l.running AND NOT l.later AND NOT l.suspect";

/**
 * The same claim where nothing is unusual: nothing has become due since it was submitted, nobody is suspect, no queue is paused,
 * the lease needs no prolonging. A job that comes alone starts sooner by a third of the two statements above. Where nothing is
 * unusual and nothing waits either, it says so, and one statement is all that an idle worker costs. Whatever else is the case, it
 * takes nothing, and the long way is gone. Kinds are never removed, so who knows as many as there are knows them all.
 */
const CLAIM_QUICK: Statement = {
  name: "claim-quick",
  readOnly: false,
  arrays: true,
  text: `
  WITH clock AS MATERIALIZED (
    SELECT ${NOW} AS now, (SELECT min(run_at) FROM baton.live WHERE later) AS next_at
  ),
  usual AS MATERIALIZED (
    SELECT EXISTS (
      SELECT FROM unnest($4::int[]) AS kinds (id) CROSS JOIN LATERAL (
        SELECT FROM baton.live l WHERE l.kind = kinds.id AND ${WAITING} LIMIT 1
      ) AS head
    ) AS waiting
    FROM clock WHERE coalesce(next_at > now, true)
      AND (SELECT count(*) FROM baton.kind) = $5::int
      AND NOT EXISTS (SELECT FROM baton.queue WHERE paused)
      AND NOT EXISTS (SELECT FROM baton.live l WHERE l.suspect AND NOT l.later)
  ),
  held AS MATERIALIZED (
    SELECT e.id FROM clock CROSS JOIN baton.lease e
    WHERE e.name = $2 AND e.expires_at >= clock.now + $3::bigint AND EXISTS (SELECT FROM usual WHERE waiting)
    FOR KEY SHARE OF e
  ),
  taken AS (
    UPDATE baton.live l SET ${startRun("$7", "$8")}, assignment = NULL
    FROM held WHERE l.ctid = ANY (ARRAY(
      SELECT head.at FROM unnest($4::int[]) AS kinds (id) CROSS JOIN LATERAL (
        SELECT l.ctid AS at, l.priority, l.run_at, l.seq FROM baton.live l
        WHERE l.kind = kinds.id AND ${WAITING} AND EXISTS (SELECT FROM held)
        ORDER BY l.priority DESC, l.run_at, l.seq LIMIT $6::int FOR UPDATE SKIP LOCKED
      ) AS head ${IN_ORDER} LIMIT $6::int
    ))
    RETURNING l.seq, l.id, l.run_at, l.job_epoch, l.attempts, l.failures, l.interruptions, l.crashes
  )
  SELECT t.seq, j.id, j.payload, j.created_at, t.run_at,
    ${SHAPE}, ${COUNTERS},
    NULL::boolean, NULL::boolean, (SELECT next_at - now FROM clock)
  FROM taken t JOIN baton.job j ON j.id = t.id
  UNION ALL
  SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL,
    EXISTS (SELECT FROM usual WHERE NOT waiting), (SELECT count(*) FROM baton.kind) <> $5::int, next_at - now
  FROM clock WHERE NOT EXISTS (SELECT FROM taken)`,
};

type ClaimRow = [
  ...row: Row,
  /** These two only in the one row that stands for no job. */
  held: boolean | null,
  contended: boolean | null,
];

/** Without a job, the two are whether nothing waits, and whether there are kinds that we do not know. */
type QuickRow = [...row: ClaimRow, nextDueInMs: number | null];

export class Claim {
  readonly #cache: StoreCache;
  readonly #rows: ClaimedRows;
  readonly #fenced: FencedClaim;

  constructor(cache: StoreCache, terms: PostgresTerms) {
    this.#cache = cache;
    this.#rows = new ClaimedRows(cache);
    this.#fenced = new FencedClaim(cache, terms);
  }

  async run(request: ClaimRequest): Promise<Claimed> {
    if (request.fence) return this.#fenced.run(request, request.fence);
    const cache = this.#cache;
    const author = await cache.authorId(request.author);
    const worker = await cache.nameId(request.worker);
    const quick = await this.#quick(request, worker, author);
    if (quick) return quick;
    for (let tries = 1; ; tries++) {
      const { expected } = this.#rows;
      const { rows, nextDueInMs } = await this.#take(request, worker, author, expected);
      if (rows[0]![0] !== null) {
        const jobs = await this.#rows.jobs(rows, expected, claimedBy(request));
        return { jobs, held: true, nextDueInMs };
      }
      const [held, contended] = rows[0]!.slice(-2);
      if (!held && request.opens && (await makeLease(cache, request))) continue;
      if (!held || !contended || tries === CONTENDED_TRIES)
        return { jobs: [], held: held === true, nextDueInMs };
    }
  }

  /** Null if nothing was taken. */
  async #quick(request: ClaimRequest, worker: number, author: number): Promise<Claimed | null> {
    const { lease, leaseMs, limit } = request;
    const cache = this.#cache;
    const kinds = cache.allKinds();
    if (!kinds || limit <= 0 || limit > QUICK_LIMIT_MAX) return null;
    const lines = kinds.filter((kind) => takesFrom(kind, request));
    const rows = await cache.db.query<QuickRow>(CLAIM_QUICK, [
      cache.now(),
      lease,
      leaseMs,
      int4s(lines.map(({ id }) => id)),
      kinds.length,
      limit,
      worker,
      author,
    ]);
    const [seq, , , , , , , idle, incomplete, nextDueInMs] = rows[0]!;
    if (incomplete) await cache.learnAllKinds();
    // A claimant that holds jobs learns the long way whether its lease is still there.
    if (seq === null) return idle && request.opens ? { jobs: [], held: true, nextDueInMs } : null;
    const jobs = await this.#rows.jobs(rows, this.#rows.expected, claimedBy(request));
    return { jobs, held: true, nextDueInMs };
  }

  async #take(
    request: ClaimRequest,
    worker: number,
    author: number,
    expected: Shape,
  ): Promise<{ rows: ClaimRow[]; nextDueInMs: number | null }> {
    const now = this.#cache.now();
    const [due, rows] = await this.#cache.db.pair<{ next_due_in_ms: number | null }, ClaimRow>(
      [PROMOTE, [now]],
      [
        CLAIM,
        [
          now,
          request.lease,
          request.leaseMs,
          texts([...request.tasks]),
          request.queues && texts([...request.queues]),
          Math.max(request.limit, 0),
          request.suspect,
          worker,
          author,
          request.opens,
          texts([...request.exceptQueues]),
          ...expected,
        ],
      ],
    );
    return { rows, nextDueInMs: due?.[0]?.next_due_in_ms ?? null };
  }
}

function takesFrom({ queue, task }: Kind, { tasks, queues, exceptQueues }: ClaimRequest): boolean {
  return tasks.has(task) && queues?.has(queue) !== false && !exceptQueues.has(queue);
}

function claimedBy({ lease, author }: ClaimRequest): Pick<ClaimedJob, "lease" | "leaderEpoch"> {
  return { lease, leaderEpoch: author.leaderEpoch };
}
