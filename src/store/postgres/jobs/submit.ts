/**
 * Stores new jobs in PostgreSQL. A batch of jobs that are due now and differ only in id, payload and trace is written
 * by a cheaper statement than any other. If a job with the same id exists, or one that has the same idempotency key, the
 * answer is that job.
 */

import { BatonError } from "../../../core/errors.ts";
import { keyConflict } from "../../../core/jobs/idempotency.ts";
import { COLUMN_FIELDS, type Fields, type JobFieldRow, rareIn } from "../../../core/jobs/job-fields.ts";
import type { Term } from "../../../core/leadership/term.ts";
import { type Queryable, type Statement, write } from "../../../platform/drivers/postgres/postgres.ts";
import { isUniqueViolation } from "../../../platform/drivers/postgres/errors.ts";
import { int4s, int8s, texts, uuids } from "../../../platform/drivers/postgres/arrays.ts";
import { authorUnder } from "../../jobs.ts";
import type { Author, NewJob, Submitted } from "../../store.ts";
import { birthplaceOf, type StoreCache, NOW, sameBirthplace, uuidOf } from "./store-cache.ts";
import { WAKE } from "./submit-function.ts";
import type { PostgresScripts } from "../scripts.ts";
import { fenceFrom, termValues } from "../terms.ts";
import { RANGE_MAX, RangeBuilder } from "./ranges.ts";
import type { Slots } from "./slots.ts";
import { freeKeys, hasKey, isFree, jobsInTheWay, type Tried } from "./submit-keys.ts";

/**
 * The common batch: jobs that differ only in id, payload and trace, due at once, without keys. Two arrays instead of ten, no
 * result, and no ON CONFLICT, which makes a row a third more expensive: if an id exists already, the batch is sent again
 * with the other statement. Jobs with consecutive ids wait as ranges. For a single job even the arrays would be a fifth of
 * the cost.
 */
const alike = (name: string, [jobs, waiting]: readonly [string, string], wakes: boolean): Statement =>
  write(name, wakes ? `${jobs}, waiting AS (${waiting}) SELECT ${WAKE}::text` : jobs + waiting);
/** The first parameter of any other batch that contains the values of a column. */
const FIRST_COLUMN = 13;
const JOB =
  "created_at, author, birthplace, timeout_ms, kind, max_attempts, priority, seq, id, payload, trace";
const SAME = "$2::int, $3::int, $4::bigint, $5::int, $6::int, $7::int";
const STATE = "run_at, updated_at, kind, author, priority, later";
const SAME_STATE = "$5::int, $2::int, $7::int, false";
/**
 * A place is that of the range and that in the range. If no job has a trace, one null stands for all: `unnest` extends it. The
 * payloads come last: the driver copies what it has once more for each parameter behind them. Ids in order, so that two batches with the
 * same jobs cannot deadlock.
 */
const MANY = [
  `WITH clock AS MATERIALIZED (SELECT ${NOW} AS now),
  number AS MATERIALIZED (SELECT ARRAY(SELECT nextval('baton.job_seq') FROM generate_series(1, $10::int)) AS first),
  fresh AS (
    INSERT INTO baton.job (${JOB})
    SELECT now, ${SAME}, number.first[a.place / ${RANGE_MAX} + 1] + a.place % ${RANGE_MAX}, a.id, a.payload, a.trace
    FROM clock, number, unnest($8::uuid[], $9::text[], $11::int[], $14::text[]) AS a (id, trace, place, payload)
    ORDER BY a.id
  )`,
  `INSERT INTO baton.live (seq, id, n, ${STATE})
  SELECT number.first[r.at], r.id, r.n, now, now, ${SAME_STATE}
  FROM clock, number, unnest($12::uuid[], $13::int[]) WITH ORDINALITY AS r (id, n, at)`,
] as const;
const ONE = [
  `WITH fresh AS (
    INSERT INTO baton.job (${JOB})
    VALUES (${NOW}, ${SAME}, nextval('baton.job_seq'), $8::uuid, $9::text, $10::text) RETURNING seq, id, created_at
  )`,
  `INSERT INTO baton.live (seq, id, ${STATE}) SELECT seq, id, created_at, created_at, ${SAME_STATE} FROM fresh`,
] as const;
const SUBMIT_ALIKE = alike("submit-alike", MANY, false);
const SUBMIT_ALIKE_WAKE = alike("submit-alike-wake", MANY, true);
const SUBMIT_ONE = alike("submit-one", ONE, false);
const SUBMIT_ONE_WAKE = alike("submit-one-wake", ONE, true);
/** As arrays of the values of a batch; a list is sent as the text of an array. */
const COLUMNS = COLUMN_FIELDS.map(({ wire, column }, at) => ({
  wire,
  parameter: `$${FIRST_COLUMN + at}::${column === "text[]" ? "text" : column}[]`,
  value: column === "text[]" ? `${wire}::text[]` : wire,
}));
const list = (pick: (column: (typeof COLUMNS)[number]) => string): string => COLUMNS.map(pick).join(", ");

/** Any other batch. Keys and ids in order, for the same reason; of the jobs with one key, the first of the list is stored. */
const any = (fenced: boolean): string => `
  WITH ${fenced ? `${fenceFrom(FIRST_COLUMN + COLUMNS.length)},` : ""}
  clock AS MATERIALIZED (SELECT ${NOW} AS now ${fenced ? "WHERE EXISTS (SELECT FROM fence)" : ""}),
  fresh AS (
    INSERT INTO baton.job (seq, id, created_at, run_at, birthplace, kind, author, schedule, trace, key_task, ${list(({ wire }) => wire)})
    SELECT seq, id, now, run_at, birthplace, kind, $2::int, $3::text, trace, key_task, ${list(({ value }) => value)}
    FROM clock CROSS JOIN LATERAL (
     SELECT seq, id, coalesce(run_at, clock.now + nullif(delay_ms, 0)) AS run_at, birthplace, kind, trace, key_task, ${list(({ wire }) => wire)}
     FROM (
       SELECT nextval('baton.job_seq') AS seq, a.*
       FROM unnest($5::uuid[], $6::int[], $7::int[], $8::bigint[], $9::bigint[], $11::text[], $12::text[], ${list(({ parameter }) => parameter)})
         AS a (id, birthplace, kind, delay_ms, run_at, trace, key_task, ${list(({ wire }) => wire)})
     ) AS numbered ORDER BY idempotency_key NULLS FIRST, key_task, CASE WHEN key_task IS NULL THEN id END, seq
    ) AS asked
    ON CONFLICT DO NOTHING
    RETURNING seq, id, created_at, run_at, kind, author, priority
  ),
  waiting AS (
    INSERT INTO baton.live (seq, id, run_at, updated_at, kind, author, priority, later)
    SELECT seq, id, coalesce(run_at, created_at), created_at, kind, author, priority, coalesce(run_at > created_at, false)
    FROM fresh
  )
  SELECT now, CASE WHEN (SELECT count(*) FROM fresh) < $4::int THEN ARRAY(SELECT id::text FROM fresh) END AS fresh,
    CASE WHEN $10::boolean THEN ${WAKE}::text END
  FROM clock`;
const SUBMIT = write("submit", any(false));
/** If the fence does not hold, `clock` is empty, and so are the jobs and the result. */
const SUBMIT_FENCED = write("submit-fenced", any(true));

interface Inserted {
  readonly now: number;
  readonly fresh: readonly string[] | null;
}

export interface SubmitBatch {
  readonly author: number;
  readonly schedule?: string | null;
  readonly wakes?: boolean;
  readonly fence?: Term;
  /** See JobStore.submit. */
  readonly apart?: boolean;
}

/** A conflicting job may be removed before it is read; then the new one can be stored. */
const TRIES = 5;

export class Submit {
  readonly #cache: StoreCache;
  readonly #scripts: PostgresScripts;
  readonly #slots: Slots;

  constructor(cache: StoreCache, scripts: PostgresScripts, slots: Slots) {
    this.#cache = cache;
    this.#scripts = scripts;
    this.#slots = slots;
  }

  /** Learns the numbers of the names in these jobs. Call it before a transaction: it uses other connections. */
  async learnNames(jobs: readonly NewJob[]): Promise<void> {
    const cache = this.#cache;
    let before: NewJob | null = null;
    for (const job of jobs) {
      const { queue, task, id } = job;
      if (before && before.queue === queue && before.task === task && sameBirthplace(before.id, id)) continue;
      before = job;
      if (cache.knownKindId(queue, task) === null) await cache.kindId(queue, task);
      const birthplace = birthplaceOf(id);
      if (cache.knownNameId(birthplace) === null) await cache.nameId(birthplace);
    }
  }

  async run(
    jobs: readonly NewJob[],
    author: Author,
    wakes: boolean,
    fence?: Term,
    apart = false,
  ): Promise<readonly Submitted[]> {
    if (jobs.length === 0) {
      await this.#scripts.check(fence);
      return [];
    }
    const first = jobs[0]!;
    const alike = !fence && jobs.every((job) => isAlike(job, first));
    await this.learnNames(alike ? [first] : jobs);
    const by = await this.#cache.authorId(authorUnder(author, fence));
    const stored = alike ? await this.#insertAlike(jobs, by, wakes) : null;
    if (stored) return stored;
    const batch: SubmitBatch = { author: by, wakes, fence, apart };
    const inTransaction = (some: readonly NewJob[]) =>
      this.#scripts.transaction((tx) => this.within(tx, some, batch));
    // A conflict in a list undoes what was stored before it was seen. In all other cases one statement is enough, mostly.
    if (!apart && jobs.length > 1 && jobs.some(hasKey)) return inTransaction(jobs);
    const answers = await this.#submit(this.#cache.db, jobs, batch, false);
    const left = jobs.filter((_, at) => answers[at] === null);
    const late = left.length > 0 ? [...(await inTransaction(left))] : [];
    return answers.map((answer) => answer ?? late.shift()!);
  }

  /** In a transaction. The names must have been learnt. */
  async within(tx: Queryable, jobs: readonly NewJob[], batch: SubmitBatch): Promise<readonly Submitted[]> {
    return (await this.#submit(tx, jobs, batch, true)) as Submitted[];
  }

  /** Without a transaction, the answer is null for a job whose key must be taken from a failed one. */
  async #submit(
    db: Queryable,
    jobs: readonly NewJob[],
    batch: SubmitBatch,
    inTransaction: boolean,
  ): Promise<readonly (Submitted | null)[]> {
    checkPayloads(jobs);
    const { fence, apart } = batch;
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
      const values = [...this.#values(asked, batch), ...(fence ? termValues(fence) : [])];
      const [row] = await db.query<Inserted>(fence ? SUBMIT_FENCED : SUBMIT, values);
      if (!row) throw await this.#scripts.refusal(fence!);
      const tried = await this.#tried(db, asked, row);
      for (const [at, answer] of tried.entries()) {
        if (typeof answer === "string" || "free" in answer) continue;
        if (answer.conflict && !apart) throw keyConflict(jobs, open[at]!, answer.id);
        answers[open[at]!] = answer;
      }
      const taken = tried.flatMap((answer) => (isFree(answer) ? answer.free : []));
      if (taken.length > 0 && inTransaction) {
        await freeKeys(db, taken);
      }
      open = open.filter((_, at) => tried[at] === "gone" || (inTransaction && isFree(tried[at]!)));
    }
    return answers;
  }

  #values(jobs: readonly NewJob[], { author, schedule = null, wakes = false }: SubmitBatch): unknown[] {
    const numbers = jobs.map((job) => this.#numbers(job));
    return [
      this.#cache.now(),
      author,
      schedule,
      jobs.length,
      uuids(jobs.map((job) => uuidOf(job.id))),
      int4s(numbers.map(([birthplace]) => birthplace)),
      int4s(numbers.map(([, kind]) => kind)),
      int8s(jobs.map((job) => job.delayMs)),
      int8s(jobs.map((job) => job.runAt)),
      wakes,
      traces(jobs),
      jobs.some(hasKey) ? texts(jobs.map((job) => (hasKey(job) ? job.task : null))) : null,
      ...COLUMN_FIELDS.map((field) => columnValues(field, jobs)),
    ];
  }

  async #tried(db: Queryable, jobs: readonly NewJob[], { now, fresh }: Inserted): Promise<readonly Tried[]> {
    const stored = (job: NewJob): Submitted => {
      const runAt = job.runAt ?? now + job.delayMs;
      return { id: job.id, status: runAt > now ? "scheduled" : "queued", existed: false };
    };
    if (fresh === null) return jobs.map(stored);

    // The same id or key twice in one batch: only the first of them was stored.
    const mine = new Set(fresh);
    const existing = await jobsInTheWay(db, this.#cache.now(), jobs);
    return jobs.map((job) => (mine.delete(uuidOf(job.id)) ? stored(job) : existing(job)));
  }

  /** Null if one of them exists. Not inside a transaction, which a conflict would abort. */
  async #insertAlike(
    jobs: readonly NewJob[],
    author: number,
    wakes: boolean,
  ): Promise<readonly Submitted[] | null> {
    checkPayloads(jobs);
    const first = jobs[0]!;
    const { id, timeoutMs, maxAttempts, priority } = first;
    const [birthplace, kind] = this.#numbers(first);
    const same = [this.#cache.now(), author, birthplace, timeoutMs, kind, maxAttempts, priority];
    const { db } = this.#cache;
    try {
      if (jobs.length === 1) {
        const values = [...same, uuidOf(id), first.payload, first.trace ?? null];
        const answer = { id, status: "queued", existed: false } as const;
        if (this.#slots.mayBeOpen()) {
          const given = await this.#slots.submit(db, first, values, wakes);
          return [given === undefined ? answer : { ...answer, given }];
        }
        await db.query(wakes ? SUBMIT_ONE_WAKE : SUBMIT_ONE, values);
        return [answer];
      }
      await db.query(wakes ? SUBMIT_ALIKE_WAKE : SUBMIT_ALIKE, [...same, ...inRanges(jobs)]);
      return jobs.map((job) => ({ id: job.id, status: "queued", existed: false }));
    } catch (error) {
      if (isUniqueViolation(error)) return null;
      throw error;
    }
  }

  #numbers({ id, queue, task }: NewJob): [birthplace: number | null, kind: number | null] {
    return [this.#cache.knownNameId(birthplaceOf(id)), this.#cache.knownKindId(queue, task)];
  }
}

function checkPayloads(jobs: readonly NewJob[]): void {
  const index = jobs.findIndex(({ payload }) => payload.includes("\0"));
  if (index < 0) return;
  throw new BatonError("BAD_PAYLOAD", `the payload of job ${index} is not JSON: it has a NUL in it`, {
    field: "payload",
  });
}

/** The jobs, and the ranges in which they wait. */
function inRanges(jobs: readonly NewJob[]): unknown[] {
  const ids = jobs.map((job) => uuidOf(job.id));
  const firsts: string[] = [];
  const sizes: number[] = [];
  const places: number[] = [];
  let range: RangeBuilder | null = null;
  for (let at = 0; at < jobs.length; at++) {
    const { payload, trace = null } = jobs[at]!;
    if (!range?.takes(ids[at]!, payload, trace)) {
      if (range) sizes.push(range.size);
      range = new RangeBuilder(ids[at]!, payload, trace);
      firsts.push(ids[at]!);
    }
    places.push((firsts.length - 1) * RANGE_MAX + range.size - 1);
  }
  sizes.push(range!.size);
  const payloads = texts(jobs.map((job) => job.payload));
  return [uuids(ids), traces(jobs), firsts.length, int4s(places), uuids(firsts), int4s(sizes), payloads];
}

function traces(jobs: readonly NewJob[]): ReturnType<typeof texts> | null {
  return jobs.some(({ trace }) => trace) ? texts(jobs.map(({ trace }) => trace ?? null)) : null;
}

function columnValues({ name, column }: JobFieldRow, jobs: readonly NewJob[]): unknown {
  const values = jobs.map((job) => (job as unknown as Fields)[name] ?? null);
  if (column === "int") return int4s(values as (number | null)[]);
  if (column === "bigint") return int8s(values as (number | null)[]);
  if (column === "text[]") return texts(values.map((value) => value && arrayText(value as string[])));
  return texts(values as (string | null)[]);
}

function arrayText(items: readonly string[]): string {
  return `{${items.map((item) => `"${item.replace(/["\\]/g, "\\$&")}"`).join(",")}}`;
}

function isAlike(job: NewJob, first: NewJob): boolean {
  return (
    job.idempotencyKey === null &&
    job.runAt === null &&
    job.delayMs === 0 &&
    rareIn(job) === null &&
    job.task === first.task &&
    job.queue === first.queue &&
    job.priority === first.priority &&
    job.maxAttempts === first.maxAttempts &&
    job.timeoutMs === first.timeoutMs &&
    sameBirthplace(job.id, first.id)
  );
}
