import { BatonError } from "../../core/errors.ts";
import type { JobId } from "../../core/ids.ts";
import { type Queryable, read, write } from "../../platform/drivers/postgres.ts";
import { int4s, int8s, texts, uuids } from "../../platform/drivers/postgres-arrays.ts";
import type { Author, NewJob, Submitted } from "../store.ts";
import { birthplaceOf, type Ledger, NOW, statusName, uuidOf } from "./ledger.ts";

const insert = (order: string): string => `
  WITH clock AS MATERIALIZED (SELECT ${NOW} AS now),
  fresh AS (
    INSERT INTO baton.job (seq, id, created_at, run_at, timeout_ms, birthplace, kind, author, max_attempts, priority, payload, idempotency_key, schedule)
    SELECT seq, id, now, coalesce(run_at, now + nullif(delay_ms, 0)), timeout_ms, birthplace, kind, $2::int, max_attempts, priority, payload, idempotency_key, $3::text
    FROM clock CROSS JOIN (
      SELECT nextval('baton.job_seq') AS seq, a.*
      FROM unnest($4::uuid[], $5::int[], $6::int[], $7::int[], $8::bigint[], $9::bigint[], $10::int[], $11::bigint[], $12::text[], $13::text[])
        AS a (id, birthplace, kind, priority, delay_ms, run_at, max_attempts, timeout_ms, payload, idempotency_key)
    ) AS asked ${order}
    ON CONFLICT DO NOTHING
    RETURNING seq, id, created_at, run_at, kind, author, priority
  ),
  waiting AS (
    INSERT INTO baton.live (seq, id, run_at, updated_at, kind, author, priority, later)
    SELECT seq, id, coalesce(run_at, created_at), created_at, kind, author, priority, coalesce(run_at > created_at, false)
    FROM fresh
  )
  SELECT (SELECT now FROM clock) AS now, CASE WHEN count(*) < $14::int THEN coalesce(array_agg(id::text), '{}') END AS fresh FROM fresh`;

const SUBMIT = write("submit", insert(""));
/** Keys in order, so that two batches with the same keys do not wait for each other crosswise. */
const SUBMIT_KEYED = write("submit-keyed", insert("ORDER BY idempotency_key NULLS FIRST"));

const EXISTING = read(
  "submit-existing",
  `SELECT j.id AS uuid, n.name AS birthplace, j.idempotency_key AS key,
     coalesce(d.status, CASE WHEN l.running THEN 2 WHEN l.run_at > ${NOW} THEN 0 ELSE 1 END) AS status
   FROM (
     SELECT id FROM baton.job WHERE id = ANY ($2::uuid[])
     UNION SELECT id FROM baton.job WHERE idempotency_key = ANY ($3::text[])
   ) AS found
   JOIN baton.job j USING (id) JOIN baton.name n ON n.id = j.birthplace
   LEFT JOIN baton.live l ON l.seq = j.seq LEFT JOIN baton.done d ON d.seq = j.seq`,
);

interface Existing {
  readonly uuid: string;
  readonly birthplace: string;
  readonly key: string | null;
  readonly status: number;
}

/** A job that stood in the way may be removed before it is looked at; then there is room for the new one. */
const TRIES = 5;

export class Submit {
  readonly #ledger: Ledger;

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  /** Numbers for the names in these jobs. To be called before a transaction: it uses connections of its own. */
  async learnNames(jobs: readonly NewJob[]): Promise<void> {
    const ledger = this.#ledger;
    for (const { queue, task, id } of jobs) {
      if (ledger.knownKindId(queue, task) === null) await ledger.kindId(queue, task);
      const birthplace = birthplaceOf(id);
      if (ledger.knownNameId(birthplace) === null) await ledger.nameId(birthplace);
    }
  }

  async run(jobs: readonly NewJob[], author: Author): Promise<readonly Submitted[]> {
    if (jobs.length === 0) return [];
    await this.learnNames(jobs);
    return this.within(this.#ledger.db, jobs, await this.#ledger.authorId(author), null);
  }

  /** With names that have been learnt. */
  async within(
    db: Queryable,
    jobs: readonly NewJob[],
    author: number,
    schedule: string | null,
  ): Promise<readonly Submitted[]> {
    const answers: (Submitted | null)[] = jobs.map(() => null);
    let open = jobs.map((_, index) => index);
    for (let tries = 0; open.length > 0; tries++) {
      if (tries === TRIES) {
        throw new BatonError(
          "STORE_UNAVAILABLE",
          "jobs of the same key come and go too fast to tell which one this is",
        );
      }
      const asked = open.map((index) => jobs[index]!);
      const given = await this.#insert(db, asked, author, schedule);
      for (const [at, answer] of given.entries()) answers[open[at]!] = answer;
      open = open.filter((_, at) => given[at] === null);
    }
    return answers as Submitted[];
  }

  async #insert(
    db: Queryable,
    jobs: readonly NewJob[],
    author: number,
    schedule: string | null,
  ): Promise<(Submitted | null)[]> {
    const keyed = jobs.some((job) => job.idempotencyKey !== null);
    const [row] = await db.query<{ now: number; fresh: string[] | null }>(keyed ? SUBMIT_KEYED : SUBMIT, [
      this.#ledger.now(),
      author,
      schedule,
      ...this.#columns(jobs),
      jobs.length,
    ]);
    const { now, fresh } = row!;
    const stored = (job: NewJob): Submitted => {
      const runAt = job.runAt ?? now + job.delayMs;
      return { id: job.id, status: runAt > now ? "scheduled" : "queued", existed: false };
    };
    if (fresh === null) return jobs.map(stored);

    // The same id or key twice in one batch: only the first of them was stored.
    const mine = new Set(fresh);
    const existing = await this.#existing(db, jobs);
    return jobs.map((job) => (mine.delete(uuidOf(job.id)) ? stored(job) : existing(job)));
  }

  async #existing(db: Queryable, jobs: readonly NewJob[]): Promise<(job: NewJob) => Submitted | null> {
    const keys = jobs.flatMap((job) => job.idempotencyKey ?? []);
    const rows = await db.query<Existing>(EXISTING, [
      this.#ledger.now(),
      uuids(jobs.map((job) => uuidOf(job.id))),
      texts(keys),
    ]);
    const byUuid = new Map(rows.map((row) => [row.uuid, row]));
    const byKey = new Map(rows.map((row) => [row.key, row]));
    return (job) => {
      const keyed = job.idempotencyKey === null ? undefined : byKey.get(job.idempotencyKey);
      const found = keyed ?? byUuid.get(uuidOf(job.id));
      if (!found) return null;
      const id = `${found.birthplace}-${found.uuid}` as JobId;
      return { id, status: statusName(found.status), existed: true };
    };
  }

  #columns(jobs: readonly NewJob[]): Buffer[] {
    const ledger = this.#ledger;
    for (const [index, { payload }] of jobs.entries()) {
      if (!payload.includes("\0")) continue;
      throw new BatonError("BAD_PAYLOAD", `the payload of job ${index} is not JSON: it has a NUL in it`, {
        field: "payload",
      });
    }
    return [
      uuids(jobs.map((job) => uuidOf(job.id))),
      int4s(jobs.map((job) => ledger.knownNameId(birthplaceOf(job.id)))),
      int4s(jobs.map((job) => ledger.knownKindId(job.queue, job.task))),
      int4s(jobs.map((job) => job.priority)),
      int8s(jobs.map((job) => job.delayMs)),
      int8s(jobs.map((job) => job.runAt)),
      int4s(jobs.map((job) => job.maxAttempts)),
      int8s(jobs.map((job) => job.timeoutMs)),
      texts(jobs.map((job) => job.payload)),
      texts(jobs.map((job) => job.idempotencyKey)),
    ];
  }
}
