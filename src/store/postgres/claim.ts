/**
 * Who is next in line. There is a line for each kind (queue and task), in the order of an index; a claim merges the heads
 * of those that its claimant may take from, so that a million jobs of an unknown task or a paused queue cost it nothing.
 */

import type { JobId } from "../../core/ids.ts";
import { type Statement, write } from "../../platform/drivers/postgres.ts";
import { int4s, texts } from "../../platform/drivers/postgres-arrays.ts";
import type { Claimed, ClaimedJob, ClaimRequest } from "../store.ts";
import { type Kind, type Ledger, NOW } from "./ledger.ts";

/** Due jobs made claimable at once: bounds how long one claim may take after a night away. */
const PROMOTE_MAX = 5_000;

const PROMOTE = write(
  "claim-promote",
  `WITH clock AS MATERIALIZED (SELECT ${NOW} AS now),
   due AS MATERIALIZED (
     SELECT seq FROM baton.live WHERE later AND run_at <= (SELECT now FROM clock)
     ORDER BY run_at, seq LIMIT ${PROMOTE_MAX} FOR UPDATE
   ),
   promoted AS (UPDATE baton.live l SET later = false FROM due WHERE l.seq = due.seq)
   SELECT CASE WHEN (SELECT count(*) FROM due) = ${PROMOTE_MAX} THEN 0 ELSE
     (SELECT min(run_at) FROM baton.live WHERE later AND run_at > (SELECT now FROM clock)) - (SELECT now FROM clock)
   END AS next_due_in_ms`,
);

/** A lease is prolonged by this part more than asked for, and then for a while not at all: spares most claims a write of its row. */
const LEASE_SURPLUS = 32;

/** The heads of the lines: what nobody has, in order. A line that somebody else holds the head of is joined behind it. */
const heads = (suspect: boolean, limit: string): string => `
  SELECT head.* FROM kinds CROSS JOIN LATERAL (
    SELECT l.ctid AS at, l.seq, l.priority, l.run_at FROM baton.live l
    WHERE l.kind = kinds.id AND NOT l.running AND NOT l.later AND ${suspect ? "" : "NOT"} l.suspect
    ORDER BY l.priority DESC, l.run_at, l.seq LIMIT ${limit} FOR UPDATE SKIP LOCKED
  ) AS head`;
const IN_ORDER = "ORDER BY priority DESC, run_at, seq";

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
  open AS MATERIALIZED (
    SELECT e.id FROM baton.lease e
    WHERE e.name = $2 AND (e.expires_at > (SELECT now FROM clock)
      OR $10::boolean AND NOT EXISTS (SELECT FROM baton.live l WHERE l.running AND l.lease = e.id))
  ),
  kinds AS MATERIALIZED (
    SELECT k.id FROM baton.kind k LEFT JOIN baton.queue q ON q.name = k.queue
    WHERE k.task = ANY ($4::text[]) AND ($5::text[] IS NULL OR k.queue = ANY ($5::text[])) AND q.paused IS NOT TRUE
      AND k.queue <> ALL ($11::text[]) AND EXISTS (SELECT FROM open)
    ORDER BY k.id
  ),
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
    UPDATE baton.live l SET running = true, lease = held.id, job_epoch = l.job_epoch + 1,
      attempts = l.attempts + 1, updated_at = (SELECT now FROM clock), started_at = (SELECT now FROM clock),
      worker = $8, author = $9, progress = NULL, progress_message = NULL
    FROM held WHERE l.ctid = ANY (ARRAY(SELECT at FROM picked))
    RETURNING l.seq, l.id, l.run_at, l.job_epoch, l.attempts, l.failures, l.interruptions, l.crashes
  ),
  prolonged AS (
    UPDATE baton.lease e SET expires_at = (SELECT now FROM clock) + $3::bigint + $3::bigint / ${LEASE_SURPLUS} FROM open
    WHERE e.id = open.id AND e.expires_at < (SELECT now FROM clock) + $3::bigint
  )
  SELECT j.seq, j.id, j.payload, j.created_at, j.run_at,
    CASE WHEN (j.kind, j.priority, j.birthplace, j.max_attempts) = ($12::int, $13::int, $14::int, $15::int)
        AND coalesce(j.timeout_ms, 0) = $16::bigint THEN NULL
      ELSE concat_ws(' ', j.kind, j.priority, j.birthplace, j.max_attempts, coalesce(j.timeout_ms, 0)) END,
    NULL::text, NULL::boolean, NULL::boolean
  FROM baton.job j WHERE j.id = ANY (ARRAY(SELECT id FROM taken))
  UNION ALL
  SELECT seq, NULL, NULL, NULL, run_at, NULL, concat_ws(' ', job_epoch, attempts, failures, interruptions, crashes), NULL, NULL
  FROM taken WHERE job_epoch > 1 OR interruptions > 0
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
 * the lease needs no prolonging. A job that comes alone starts sooner by a third of the two statements above. Whatever else is
 * the case, also that the lines are empty, it takes nothing, and the long way is gone. Kinds are never removed, so who knows
 * as many as there are knows them all.
 */
const CLAIM_QUICK: Statement = {
  name: "claim-quick",
  readOnly: false,
  arrays: true,
  text: `
  WITH clock AS MATERIALIZED (
    SELECT ${NOW} AS now, (SELECT min(run_at) FROM baton.live WHERE later) AS next_at
  ),
  held AS MATERIALIZED (
    SELECT e.id FROM clock CROSS JOIN baton.lease e
    WHERE e.name = $2 AND e.expires_at >= clock.now + $3::bigint AND coalesce(clock.next_at > clock.now, true)
      AND EXISTS (
        SELECT FROM unnest($4::int[]) AS kinds (id) CROSS JOIN LATERAL (
          SELECT FROM baton.live l WHERE l.kind = kinds.id AND ${WAITING} LIMIT 1
        ) AS head
      )
      AND (SELECT count(*) FROM baton.kind) = $5::int
      AND NOT EXISTS (SELECT FROM baton.queue WHERE paused)
      AND NOT EXISTS (SELECT FROM baton.live l WHERE l.suspect AND NOT l.later)
    FOR KEY SHARE OF e
  ),
  taken AS (
    UPDATE baton.live l SET running = true, lease = held.id, job_epoch = l.job_epoch + 1,
      attempts = l.attempts + 1, updated_at = (SELECT now FROM clock), started_at = (SELECT now FROM clock),
      worker = $7, author = $8, progress = NULL, progress_message = NULL
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
    concat_ws(' ', j.kind, j.priority, j.birthplace, j.max_attempts, coalesce(j.timeout_ms, 0)),
    concat_ws(' ', t.job_epoch, t.attempts, t.failures, t.interruptions, t.crashes),
    NULL::boolean, NULL::boolean, (SELECT next_at - now FROM clock)
  FROM taken t JOIN baton.job j ON j.id = t.id`,
};

/**
 * Each column costs the server half a microsecond a row and us as much, so what says nothing new is null: jobs of one shape
 * tend to come together. A job that ran before has a second row, with its due time and counters in place of the rest.
 */
type Row = [
  seq: number | null,
  uuid: string | null,
  payload: string,
  createdAt: number,
  runAt: number | null,
  /** Null when it is the shape that was expected. */
  shape: string | null,
  counters: string | null,
  /** These two only in the one row that stands for no job. */
  held: boolean | null,
  contended: boolean | null,
];

type QuickRow = [...row: Row, nextDueInMs: number | null];

/** What jobs that were submitted alike have in common. No timeout is 0. */
type Shape = readonly [
  kind: number,
  priority: number,
  birthplace: number,
  maxAttempts: number,
  timeoutMs: number,
];
const NO_SHAPE: Shape = [0, 0, 0, 0, 0];

type Counters = readonly [
  jobEpoch: number,
  attempts: number,
  failures: number,
  interruptions: number,
  crashes: number,
];
const FIRST_RUN: Counters = [1, 1, 0, 0, 0];

const OPEN_LEASE = write(
  "claim-open-lease",
  `INSERT INTO baton.lease (name, expires_at) VALUES ($2, ${NOW} + $3::bigint) ON CONFLICT DO NOTHING RETURNING id`,
);

/**
 * Another claimant holds more rows for a moment than it takes, if it merges several lines. Who finds nothing but those
 * looks again instead of going to sleep.
 */
const CONTENDED_TRIES = 4;

export class Claim {
  readonly #ledger: Ledger;
  /** That of the last job: the next ones are likely to have it too. */
  #shape = NO_SHAPE;

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  async run(request: ClaimRequest): Promise<Claimed> {
    const ledger = this.#ledger;
    const author = await ledger.authorId(request.author);
    const worker = await ledger.nameId(request.worker);
    const quick = await this.#quick(request, worker, author);
    if (quick) return quick;
    for (let tries = 1; ; tries++) {
      const expected = this.#shape;
      const { rows, nextDueInMs } = await this.#take(request, worker, author, expected);
      if (rows[0]![0] !== null) {
        const jobs = await this.#jobs(rows, request, expected);
        // The quick way was closed to it, perhaps because of a kind that is new to us.
        if (request.limit <= QUICK_LIMIT_MAX) void ledger.learnAllKinds().catch(() => {});
        return { jobs, held: true, nextDueInMs };
      }
      const [held, contended] = rows[0]!.slice(-2);
      if (!held && request.opens && (await this.#openLease(request))) continue;
      if (!held || !contended || tries === CONTENDED_TRIES)
        return { jobs: [], held: held === true, nextDueInMs };
    }
  }

  /** Null when nothing was taken, whyever. */
  async #quick(request: ClaimRequest, worker: number, author: number): Promise<Claimed | null> {
    const { lease, leaseMs, limit } = request;
    const ledger = this.#ledger;
    const kinds = ledger.allKinds();
    if (!kinds || limit <= 0 || limit > QUICK_LIMIT_MAX) return null;
    const lines = kinds.filter((kind) => takesFrom(kind, request));
    if (lines.length === 0) return null;
    const rows = await ledger.db.query<QuickRow>(CLAIM_QUICK, [
      ledger.now(),
      lease,
      leaseMs,
      int4s(lines.map(({ id }) => id)),
      kinds.length,
      limit,
      worker,
      author,
    ]);
    if (rows.length === 0) return null;
    const jobs = await this.#jobs(rows, request, this.#shape);
    return { jobs, held: true, nextDueInMs: rows[0]![9] };
  }

  async #take(
    request: ClaimRequest,
    worker: number,
    author: number,
    expected: Shape,
  ): Promise<{ rows: Row[]; nextDueInMs: number | null }> {
    const now = this.#ledger.now();
    const [due, rows] = await this.#ledger.db.pair<{ next_due_in_ms: number | null }, Row>(
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

  /** False when the lease is there: then it has run out with jobs under it, and stays lost. */
  async #openLease({ lease, leaseMs }: ClaimRequest): Promise<boolean> {
    const made = await this.#ledger.db.query(OPEN_LEASE, [this.#ledger.now(), lease, leaseMs]);
    return made.length === 1;
  }

  async #jobs(
    rows: readonly (Row | QuickRow)[],
    request: ClaimRequest,
    expected: Shape,
  ): Promise<ClaimedJob[]> {
    const ledger = this.#ledger;
    const shapes = new Map<string | null, Shape>([[null, expected]]);
    for (const row of rows) if (!shapes.has(row[5])) shapes.set(row[5], numbers(row[5]!));
    const told = [...shapes.values()].filter((shape) => shape !== NO_SHAPE);
    await ledger.learnKinds(new Set(told.map((shape) => shape[0])));
    await ledger.learnNames(new Set(told.map((shape) => shape[2])));
    const earlier = new Map<number, Row | QuickRow>();
    for (const row of rows) if (row[6] !== null) earlier.set(row[0]!, row);
    const { lease } = request;
    const { leaderEpoch } = request.author;
    const jobs: ClaimedJob[] = [];
    for (const [seq, uuid, payload, createdAt, runAt, shape] of rows) {
      if (uuid === null) continue;
      const before = earlier.get(seq!);
      const [kind, priority, birthplace, maxAttempts, timeoutMs] = (this.#shape = shapes.get(shape)!);
      const { queue, task } = ledger.kind(kind);
      const [jobEpoch, attempts, failures, interruptions, crashes] = before ? numbers(before[6]!) : FIRST_RUN;
      jobs.push({
        id: `${ledger.name(birthplace)}-${uuid}` as JobId,
        jobEpoch,
        lease,
        ref: seq,
        task,
        queue,
        priority,
        payload,
        attempts,
        failures,
        interruptions,
        crashes,
        maxAttempts,
        timeoutMs: timeoutMs === 0 ? null : timeoutMs,
        createdAt,
        runAt: before ? before[4]! : (runAt ?? createdAt),
        leaderEpoch,
      });
    }
    return jobs.sort(inOrder);
  }
}

function takesFrom({ queue, task }: Kind, { tasks, queues, exceptQueues }: ClaimRequest): boolean {
  return tasks.has(task) && queues?.has(queue) !== false && !exceptQueues.has(queue);
}

function numbers(text: string): readonly [number, number, number, number, number] {
  return text.split(" ").map(Number) as [number, number, number, number, number];
}

function inOrder(a: ClaimedJob, b: ClaimedJob): number {
  return b.priority - a.priority || a.runAt - b.runAt || (a.ref as number) - (b.ref as number);
}
