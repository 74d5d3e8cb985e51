/**
 * Stores new jobs in SQLite, inside the caller's transaction. Jobs without special settings are inserted many at a time
 * into `job` only; any other job also gets a row in `live`. If a job with the same id exists, or one that has the same
 * idempotency key, the answer is that job.
 */

import type { JobId } from "../../../core/ids.ts";
import { isSameJson, keyConflict, keyName, keyVerdict } from "../../../core/jobs/idempotency.ts";
import type { JobStatus } from "../../../core/jobs/job.ts";
import { COLUMN_FIELDS, FILTER_FIELDS, type Fields, rareIn } from "../../../core/jobs/job-fields.ts";
import type { Author, NewJob, Submitted } from "../../store.ts";
import { idKey, type StoreCache } from "./store-cache.ts";
import type { Read } from "./read.ts";
import { STATUS } from "../../job-row.ts";

/**
 * One statement for each row costs 1.5 µs more than for ten or fifty (measured); more rows gain nothing. Parameters are
 * anonymous: looking up numbered ones is quadratic in their number.
 */
const ROWS = [50, 10, 1] as const;
const PLAIN_VALUES = 9;

const COLUMNS =
  "(seq, id, id_key, kind, priority, payload, created_at, max_attempts, timeout_ms, idempotency_key, schedule, author, fresh, trace)";
/** For a job that is not plain. */
const OTHER_COLUMNS = [
  "seq",
  "id",
  "id_key",
  "kind",
  "created_at",
  "schedule",
  "author",
  "trace",
  "key_task",
].concat(COLUMN_FIELDS.map(({ wire }) => wire));

export class Submit {
  readonly #cache: StoreCache;
  readonly #read: Read;
  readonly #sql;

  constructor(cache: StoreCache, read: Read) {
    this.#cache = cache;
    this.#read = read;
    const { file } = cache;
    this.#sql = {
      plain: ROWS.map((rows) => ({ rows, insert: file.prepare(plainInsert(rows, "NULL")) })),
      /** Most jobs have no trace, and every bound value costs. */
      traced: ROWS.map((rows) => ({ rows, insert: file.prepare(plainInsert(rows, "?")) })),
      other: file.prepare(
        `INSERT INTO job (fresh, ${OTHER_COLUMNS.join(", ")}) VALUES (0, ${OTHER_COLUMNS.map(() => "?").join(", ")})`,
      ),
      waiting: file.prepare(
        `INSERT INTO live (seq, status, priority, run_at, job_epoch, attempts, failures, interruptions, crashes, updated_at, author)
         VALUES (?, ?, ?, ?, 0, 0, 0, 0, 0, ?, ?)`,
      ),
      /** The side tables of list fields with a filter. */
      listed: FILTER_FIELDS.filter(({ kind }) => kind === "texts").map(({ name, filter }) => ({
        name,
        insert: file.prepare(`INSERT OR IGNORE INTO job_${filter.name} (value, seq) VALUES (?, ?)`),
      })),
      byKey: file.prepare("SELECT seq, id, payload FROM job WHERE idempotency_key = ? AND key_task = ?"),
      freeKey: file.prepare("UPDATE job SET key_task = NULL WHERE seq = ?"),
    };
  }

  run(
    jobs: readonly NewJob[],
    author: Author,
    { schedule = null, apart = false }: { readonly schedule?: string | null; readonly apart?: boolean } = {},
  ): Submitted[] {
    // First, because what is written before an error of ours stays.
    if (!apart) this.#refuseConflicts(jobs);
    const now = this.#cache.clock.now();
    const by = this.#cache.authorId(author);
    const answers: Submitted[] = [];
    let plain: NewJob[] = [];
    let keys: number[] = [];
    const insertPlain = (): void => {
      if (plain.length > 0) this.#insertPlain(plain, keys, by, now);
      plain = [];
      keys = [];
    };
    for (const job of jobs) {
      const key = idKey(job.id);
      const repeated =
        !this.#cache.surelyNew(key) &&
        (this.#cache.seqOf(job.id) !== null || plain.some(({ id }) => id === job.id));
      if (!repeated && isPlain(job) && schedule === null) {
        plain.push(job);
        keys.push(key);
        answers.push({ id: job.id, status: "queued", existed: false });
        continue;
      }
      // Numbers follow the order of arrival, so earlier jobs of the batch are inserted first, and found if this one
      // repeats one.
      insertPlain();
      answers.push(
        this.#existing(job) ?? {
          id: job.id,
          status: this.#insertOther(job, key, by, now, schedule),
          existed: false,
        },
      );
    }
    insertPlain();
    return answers;
  }

  /** The job that has this key, or has this id after a lost reply. Null if the job is to be stored. */
  #existing(job: NewJob): Submitted | null {
    if (this.#cache.seqOf(job.id) !== null)
      return { id: job.id, status: this.#read.get(job.id)!.status, existed: true };
    const first = this.#keyed(job);
    if (!first) return null;
    if (first.verdict === "reused") {
      this.#sql.freeKey.run(first.seq);
      return null;
    }
    const { id, status } = first;
    return { id, status, existed: true, ...(first.verdict === "conflict" && { conflict: true }) };
  }

  /** The job that has its key. */
  #keyed(job: NewJob) {
    if (job.idempotencyKey === null) return null;
    const row = this.#sql.byKey.get(job.idempotencyKey, job.task);
    if (!row) return null;
    const { seq, id, payload } = row as { seq: number; id: JobId; payload: string };
    const { status } = this.#read.get(id)!;
    return { seq, id, status, verdict: keyVerdict({ status, payload }, job) };
  }

  #refuseConflicts(jobs: readonly NewJob[]): void {
    const firsts = new Map<string, NewJob>();
    for (const [at, job] of jobs.entries()) {
      if (job.idempotencyKey === null || this.#cache.seqOf(job.id) !== null) continue;
      const twin = firsts.get(keyName(job));
      if (twin && !isSameJson(twin.payload, job.payload)) throw keyConflict(jobs, at, twin.id);
      if (twin) continue;
      firsts.set(keyName(job), job);
      const first = this.#keyed(job);
      if (first?.verdict === "conflict") throw keyConflict(jobs, at, first.id);
    }
  }

  #insertPlain(jobs: readonly NewJob[], keys: readonly number[], by: number, now: number): void {
    const cache = this.#cache;
    let { queue, task } = jobs[0]!;
    let kind = cache.kindId(queue, task);
    let at = 0;
    const traced = jobs.some(({ trace }) => trace);
    for (const { rows, insert } of traced ? this.#sql.traced : this.#sql.plain) {
      if (jobs.length - at < rows) continue;
      const values = Array<string | number | null>(rows * (traced ? PLAIN_VALUES + 1 : PLAIN_VALUES));
      while (jobs.length - at >= rows) {
        for (let v = 0; v < values.length; at++) {
          const job = jobs[at]!;
          values[v++] = ++cache.lastSeq;
          values[v++] = job.id;
          values[v++] = keys[at]!;
          if (job.task !== task || job.queue !== queue) {
            ({ queue, task } = job);
            kind = cache.kindId(queue, task);
          }
          values[v++] = kind;
          values[v++] = job.payload;
          values[v++] = now;
          values[v++] = job.maxAttempts;
          values[v++] = job.timeoutMs;
          values[v++] = by;
          if (traced) values[v++] = job.trace ?? null;
        }
        insert.run(...values);
      }
    }
    this.#countQueued(jobs);
  }

  #countQueued(jobs: readonly NewJob[]): void {
    for (let from = 0, to = 0; from < jobs.length; from = to) {
      const { queue } = jobs[from]!;
      while (to < jobs.length && jobs[to]!.queue === queue) to++;
      this.#cache.count(queue, null, "queued", to - from);
    }
  }

  #insertOther(job: NewJob, key: number, by: number, now: number, schedule: string | null): JobStatus {
    const seq = ++this.#cache.lastSeq;
    const runAt = job.runAt ?? now + job.delayMs;
    const status = runAt > now ? "scheduled" : "queued";
    const { id, task, queue, priority } = job;
    const kind = this.#cache.kindId(queue, task);
    const trace = job.trace ?? null;
    const keyTask = job.idempotencyKey === null ? null : task;
    this.#sql.other.run(seq, id, key, kind, now, schedule, by, trace, keyTask, ...columnValues(job));
    for (const { name, insert } of this.#sql.listed)
      for (const text of ((job as unknown as Fields)[name] ?? []) as string[]) insert.run(text, seq);
    this.#sql.waiting.run(seq, STATUS[status], priority, runAt, now, by);
    this.#cache.count(queue, null, status);
    return status;
  }
}

/** It waits in the log and needs no row in `live`. */
function isPlain(job: NewJob): boolean {
  return (
    job.priority === 0 &&
    job.delayMs === 0 &&
    job.runAt === null &&
    job.idempotencyKey === null &&
    rareIn(job) === null
  );
}

/** Lists as JSON text; an empty list and a missing field as null. */
function columnValues(job: NewJob): (string | number | null)[] {
  return COLUMN_FIELDS.map(({ name, kind }) => {
    const value = (job as unknown as Fields)[name] ?? null;
    return kind === "texts" && value !== null ? JSON.stringify(value) : (value as string | number | null);
  });
}

function plainInsert(rows: number, trace: "?" | "NULL"): string {
  const row = `(?, ?, ?, ?, 0, ?, ?, ?, ?, NULL, NULL, ?, 1, ${trace})`;
  return `INSERT INTO job ${COLUMNS} VALUES ${Array(rows).fill(row).join(", ")}`;
}
