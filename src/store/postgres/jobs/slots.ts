/**
 * Slots of workers that have room: a job that is submitted alone is inserted already running, under the lease of one of them, and
 * starts after one commit instead of two.
 *
 * A submit locks the row of the slot until it commits (FOR KEY SHARE): whoever removes the row, as its worker or with an expired
 * lease, waits for that, and then finds the job in `live` like any other that runs under the lease. Many submits may share a
 * slot. Nobody counts its places: that would be a new version of the row for each job. Its worker closes it when it has no room.
 *
 * No job is overtaken: one that waits in any line of the worker, or whatever a quick claim takes for unusual, and the new job
 * waits too.
 */

import { BatonError } from "../../../core/errors.ts";
import { takesFrom } from "../../../core/push/dispatch.ts";
import type { LeaseId } from "../../../core/ids.ts";
import type { Clock } from "../../../platform/clock.ts";
import { type Queryable, read, type Statement, write } from "../../../platform/drivers/postgres/postgres.ts";
import { int4s, int8s } from "../../../platform/drivers/postgres/arrays.ts";
import type { ClaimedJob, NewJob, Run, Slot, SlotRequest, SlotStore } from "../../store.ts";
import { makeLease, openLease, prolongLease } from "./claim/leases.ts";
import { ClaimedRows, COUNTERS, NO_JOB, type Row, SHAPE } from "./claim/claimed-rows.ts";
import { WAITING } from "./claim/queue-order.ts";
import { type Ref, seqOf } from "./ranges.ts";
import { NOW, type StoreCache } from "./store-cache.ts";
import { WAKE } from "./submit-function.ts";

const FRESH = "NOT EXISTS (SELECT FROM baton.slot s JOIN open ON s.lease = open.id)";
/** Of a slot that is open it changes only what differs, so that asking writes nothing. */
const OPEN = write(
  "slot-open",
  `WITH clock AS MATERIALIZED (SELECT ${NOW} AS now),
  ${openLease("$4")},
  ${prolongLease(FRESH)},
  made AS (
    INSERT INTO baton.slot (lease, lease_ms, kinds, worker, author, channel)
    SELECT open.id, $3::bigint, $5::int[], $6::int, $7::int, $8::text FROM open
    WHERE NOT EXISTS (SELECT FROM baton.slot s WHERE s.lease = open.id AND s.kinds = $5::int[] AND s.author = $7::int)
    ON CONFLICT (lease) DO UPDATE SET kinds = excluded.kinds, author = excluded.author
  )
  SELECT FROM open`,
);
const CLOSE = write(
  "slot-close",
  "DELETE FROM baton.slot s USING baton.lease e WHERE e.id = s.lease AND e.name = $1",
);
const SHOWN = "l.seq, l.id, l.run_at, l.job_epoch, l.attempts, l.failures, l.interruptions, l.crashes";
const GIVEN = `l.started_at IS NOT NULL AND l.job_epoch = 1 AND l.n = 1 AND l.lease = (SELECT id FROM baton.lease WHERE name = $1)`;
const shown = (name: string, taken: string, more = ""): Statement => ({
  ...read(
    name,
    `WITH taken AS MATERIALIZED (${taken})
    SELECT t.seq, j.id, j.payload, j.created_at, t.run_at, ${SHAPE}, ${COUNTERS}, NULL::smallint
    FROM taken t JOIN baton.job j ON j.id = t.id ${more}`,
  ),
  arrays: true,
});
/** The line of an idle worker is short: this costs what a claim costs that finds nothing. */
const LOOK = shown(
  "slot-look",
  `SELECT given.* FROM unnest($2::int[]) AS kinds (id) CROSS JOIN LATERAL (
    SELECT ${SHOWN} FROM baton.live l
    WHERE l.kind = kinds.id AND NOT l.later AND NOT l.suspect AND ${GIVEN} AND l.seq <> ALL ($3::bigint[])
  ) AS given`,
  `UNION ALL SELECT ${NO_JOB}
   WHERE NOT EXISTS (SELECT FROM baton.slot s JOIN baton.lease e ON e.id = s.lease WHERE e.name = $1)`,
);
const READ = shown(
  "slot-read",
  `SELECT ${SHOWN} FROM baton.live l WHERE l.seq = ANY ($2::bigint[]) AND ${GIVEN}`,
);

/**
 * As a submit of a single job, which it is without a slot. A slot counts while half of its lease is left, so that a worker that
 * stands still gets no more jobs; the submitter's own comes first, since it need not be notified.
 */
const GIVE: Statement = {
  ...write(
    "submit-one-slot",
    `WITH clock AS MATERIALIZED (SELECT ${NOW} AS now),
    slot AS MATERIALIZED (
      SELECT s.lease, s.kinds, s.worker, s.author, s.channel, e.name FROM clock CROSS JOIN baton.slot s JOIN baton.lease e ON e.id = s.lease
      WHERE $5::int = ANY (s.kinds) AND e.expires_at > clock.now + s.lease_ms / 2
      ORDER BY e.name <> $11::text, hashtextextended($8::text, s.lease) LIMIT 1 FOR KEY SHARE OF s SKIP LOCKED
    ),
    given AS MATERIALIZED (
      SELECT * FROM slot WHERE NOT EXISTS (SELECT FROM baton.queue WHERE paused)
        AND NOT EXISTS (SELECT FROM baton.live l WHERE l.later AND l.run_at <= (SELECT now FROM clock))
        AND NOT EXISTS (SELECT FROM baton.live l WHERE l.suspect AND NOT l.later)
        AND NOT EXISTS (
          SELECT FROM unnest(slot.kinds) AS kinds (id)
          CROSS JOIN LATERAL (SELECT FROM baton.live l WHERE l.kind = kinds.id AND ${WAITING} LIMIT 1) AS head
        )
    ),
    fresh AS (
      INSERT INTO baton.job (created_at, author, birthplace, timeout_ms, kind, max_attempts, priority, seq, id, payload, trace)
      SELECT now, $2::int, $3::int, $4::bigint, $5::int, $6::int, $7::int, nextval('baton.job_seq'), $8::uuid, $9::text, $10::text
      FROM clock RETURNING seq, id, created_at
    ),
    placed AS (
      INSERT INTO baton.live (seq, id, run_at, updated_at, kind, author, priority, later, started_at, worker, lease, job_epoch, attempts)
      SELECT f.seq, f.id, f.created_at, f.created_at, $5::int, coalesce(g.author, $2::int), $7::int, false,
        CASE WHEN g.lease IS NOT NULL THEN f.created_at END, g.worker, g.lease, CASE WHEN g.lease IS NULL THEN 0 ELSE 1 END,
        CASE WHEN g.lease IS NULL THEN 0 ELSE 1 END
      FROM fresh f LEFT JOIN given g ON true
    )
    SELECT g.name, f.seq, f.created_at, CASE
      WHEN g.name IS NULL THEN CASE WHEN $12::boolean THEN ${WAKE}::text END
      WHEN g.name IS DISTINCT FROM $11::text THEN pg_notify(g.channel, 'sql:0:' || jsonb_build_array(jsonb_build_array(
        'job.given.' || split_part(g.name, '/', 2), '',
        jsonb_build_object('lease', g.name, 'ref', f.seq, 'createdAt', f.created_at, 'runAt', f.created_at, 'leaderEpoch',
          (SELECT leader_epoch FROM baton.author a WHERE a.id = g.author)) || coalesce($13::jsonb, '{}')
      ))::text)::text
    END
    FROM fresh f LEFT JOIN given g ON true`,
  ),
  arrays: true,
};
type Given = [lease: LeaseId | null, seq: number, createdAt: number];

interface Opened {
  readonly kinds: readonly number[];
  readonly author: number;
  readonly leaderEpoch: number;
}

/** With the rest of a hint it stays below what PostgreSQL takes. A larger job is read. */
const HINT_BYTES_MAX = 7_000;

/** A look for slots doubles what a submit costs the server: where there was none, the next ones do without for so long. */
const NONE_MS = 5;

/** The values of a single job, as `SUBMIT_ONE` takes them. */
type Values = readonly unknown[];

export class Slots implements SlotStore {
  readonly #cache: StoreCache;
  readonly #rows: ClaimedRows;
  /** By lease: those that were opened here and not closed. */
  readonly #opened = new Map<LeaseId, Opened>();

  readonly #clock: Clock;
  #noneUntil = -Infinity;

  constructor(cache: StoreCache, clock: Clock) {
    this.#cache = cache;
    this.#clock = clock;
    this.#rows = new ClaimedRows(cache);
  }

  async open(request: SlotRequest, known: readonly Run[]): Promise<Slot> {
    const cache = this.#cache;
    const { lease, leaseMs } = request;
    const all = cache.allKinds();
    if (!all) return { opened: false, held: true, jobs: await this.close(lease, known) };
    const kinds = all.filter((kind) => takesFrom(request, kind)).map(({ id }) => id);
    const author = await cache.authorId(request.author);
    const worker = await cache.nameId(request.worker);
    const before = this.#opened.get(lease);
    const { leaderEpoch } = request.author;
    this.#opened.set(lease, { kinds, author, leaderEpoch });
    const look = this.#look(lease, known);
    if (before?.author === author && String(before.kinds) === String(kinds)) {
      const rows = await cache.db.query<Row>(...look);
      if (rows.every(([seq]) => seq !== null))
        return { opened: true, held: true, jobs: await this.#found(rows, lease) };
    }
    const values = [
      cache.now(),
      lease,
      leaseMs,
      request.opens,
      int4s(kinds),
      worker,
      author,
      request.channel,
    ];
    for (;;) {
      const [open, rows] = await cache.db.pair<object, Row>([OPEN, values], look);
      if (!open) throw unanswered("opened");
      if (open.length > 0) return { opened: true, held: true, jobs: await this.#found(rows, lease) };
      if (request.opens && (await makeLease(cache, request))) continue;
      this.#opened.delete(lease);
      return { opened: false, held: false, jobs: [] };
    }
  }

  async close(lease: LeaseId, known: readonly Run[]): Promise<readonly ClaimedJob[]> {
    if (!this.#opened.has(lease)) return [];
    const [closed, rows] = await this.#cache.db.pair<object, Row>([CLOSE, [lease]], this.#look(lease, known));
    if (!closed) throw unanswered("closed");
    const jobs = await this.#found(rows, lease);
    this.#opened.delete(lease);
    return jobs;
  }

  async read(lease: LeaseId, refs: readonly unknown[]): Promise<readonly ClaimedJob[]> {
    const rows = await this.#cache.db.query<Row>(READ, [lease, int8s(refs.map((ref) => seqOf(ref as Ref)))]);
    return this.#found(rows, lease);
  }

  mayBeOpen(): boolean {
    return this.#opened.size > 0 || this.#clock.monotonic() >= this.#noneUntil;
  }

  /** Submits one job; what has become of it, undefined if it waits. */
  async submit(
    db: Queryable,
    job: NewJob,
    values: Values,
    wakes: boolean,
  ): Promise<ClaimedJob | null | undefined> {
    const [own, opened] = [...this.#opened].at(-1) ?? [null, null];
    const [row] = await db.query<Given>(GIVE, [...values, own, wakes, hinted(job)]);
    const [lease, ref, createdAt] = row!;
    if (lease === null) {
      this.#noneUntil = this.#clock.monotonic() + NONE_MS;
      return undefined;
    }
    if (lease !== own) return null;
    const { leaderEpoch } = opened;
    return { ...firstRun(job), lease, ref, createdAt, runAt: createdAt, leaderEpoch };
  }

  #look(lease: LeaseId, known: readonly Run[]): [Statement, unknown[]] {
    const seqs = known.map(({ ref }) => seqOf(ref as Ref));
    return [LOOK, [lease, int4s(this.#opened.get(lease)!.kinds), int8s(seqs)]];
  }

  /** Null stands for a slot that is not open. */
  #found(rows: readonly Row[], lease: LeaseId): Promise<ClaimedJob[]> {
    const { leaderEpoch = 0 } = this.#opened.get(lease) ?? {};
    const jobs = rows.filter(([seq]) => seq !== null);
    return this.#rows.jobs(jobs, this.#rows.expected, { lease, leaderEpoch });
  }
}

function unanswered(done: string): BatonError {
  return new BatonError("STORE_UNAVAILABLE", `the database did not say whether a slot was ${done}`);
}

/** A job that has never run, as its first run. Its worker counts as any claimant does. */
function firstRun({ id, task, queue, priority, payload, maxAttempts, timeoutMs, trace = null }: NewJob) {
  const spent = { failures: 0, interruptions: 0, crashes: 0, maxAttempts };
  return { id, jobEpoch: 1, attempts: 1, ...spent, task, queue, priority, payload, timeoutMs, trace };
}

function hinted(job: NewJob): string | null {
  if (job.payload.length > HINT_BYTES_MAX) return null;
  const text = JSON.stringify(firstRun(job));
  return Buffer.byteLength(text) <= HINT_BYTES_MAX ? text : null;
}
