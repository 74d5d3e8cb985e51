/**
 * Ranges: a row of `live` or `done` stands for `n` jobs with consecutive numbers.
 *
 *   waiting     a range of jobs that one statement submitted, alike in everything but id and payload
 *   running     a slice of such a range, which one claim took; its first run
 *   completed   a piece of such a slice, whose jobs ended together and without a result
 *
 * Whatever makes one job differ from the others of its range (a report, a request to cancel, a failure, a mark of a
 * dispatch, the end of its lease) first takes the range apart, so that each of its jobs has a row of its own. All
 * statements about single jobs find such rows only. Rows are never joined again.
 *
 * Ids of a range count in the 12 bits behind their time (core/ids.ts), and never carry over into it: the id of each job
 * follows from that of the first one, and a piece of the index of `job` contains the payloads of all of them.
 */

import { type Queryable, type Statement, write } from "../../../platform/drivers/postgres/postgres.ts";
import { int8s } from "../../../platform/drivers/postgres/arrays.ts";

/**
 * Also the step of `job_seq`: each statement numbers its jobs upwards from the next value. More gains little, and
 * leaves less for other workers while one takes a slice.
 */
export const RANGE_MAX = 128;

/** Between the payloads of a range. JSON text cannot contain it; a payload that does is in no range. */
export const PAYLOAD_END = "\u001e";
/** The payloads are one value in the answer to a claim. */
export const RANGE_BYTES_MAX = 2 ** 20;

/** Kept with a claimed job: its number, and for a range that of the claimed row. */
export type Ref = number | { readonly row: number; readonly seq: number };

export function seqOf(ref: Ref): number {
  return typeof ref === "number" ? ref : ref.seq;
}

/** The id of the job at this place of a range whose first job has `first`. */
export const ID_AT = `
  CREATE FUNCTION baton.id_at(first uuid, place int) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT overlay(first::text placing lpad(to_hex(('x' || substr(first::text, 16, 3))::bit(12)::int + place), 3, '0') from 16 for 3)::uuid
  $$`;

/** The row that was claimed; null if it is not known. */
export function rowOf(ref: Ref | null | undefined): number | null {
  return typeof ref === "object" ? (ref?.row ?? null) : null;
}

/** Takes the jobs of a range one after the other, as long as they fit. */
export class RangeBuilder {
  size = 1;
  #bytes: number;
  readonly #head: string;
  readonly #count: number;
  readonly #tail: string;
  readonly #trace: string | null;
  readonly #closed: boolean;

  constructor(uuid: string, payload: string, trace: string | null) {
    this.#head = uuid.slice(0, 15);
    this.#count = countOf(uuid);
    this.#tail = uuid.slice(18);
    this.#bytes = payload.length;
    this.#trace = trace;
    this.#closed = payload.includes(PAYLOAD_END);
  }

  takes(uuid: string, payload: string, trace: string | null): boolean {
    const fits =
      !this.#closed &&
      this.size < RANGE_MAX &&
      this.#bytes + payload.length <= RANGE_BYTES_MAX &&
      trace === this.#trace &&
      countOf(uuid) === this.#count + this.size &&
      uuid.startsWith(this.#head) &&
      uuid.endsWith(this.#tail) &&
      !payload.includes(PAYLOAD_END);
    if (!fits) return false;
    this.size++;
    this.#bytes += payload.length;
    return true;
  }
}

function countOf(uuid: string): number {
  return Number.parseInt(uuid.slice(15, 18), 16);
}

/** The columns in which rows of a range may differ from those of other ranges. All others have their default. */
export const LIVE_SHARED =
  "run_at, updated_at, started_at, kind, author, worker, lease, job_epoch, attempts, priority, later";
const DONE_SHARED =
  "kind, finished_at, run_at, started_at, author, worker, lease, job_epoch, attempts, failures, interruptions, crashes, logs, status, cancel_requested";

/** The row whose range contains the job with this number. The bound below keeps the walk from dead rows. */
export const covering = (table: "live" | "done", seq: string, lock = ""): string => `
  SELECT * FROM (
    SELECT * FROM baton.${table} WHERE seq <= ${seq} AND seq > ${seq} - ${RANGE_MAX} ORDER BY seq DESC LIMIT 1 ${lock}
  ) AS nearest WHERE nearest.seq + nearest.n > ${seq}`;

/** The rows `l` and `d` of a job `j`, where they exist. Their `id` and `seq` are those of the first job of the range. */
export const STATE_OF_JOB = `LEFT JOIN LATERAL (${covering("live", "j.seq")}) AS l ON true
  LEFT JOIN LATERAL (${covering("done", "j.seq")}) AS d ON true`;

/** The jobs `j` of a row `l` or `d`. Jobs of others may have ids between those of a range. */
export const jobsOf = (row: string): string =>
  `j.id BETWEEN ${row}.id AND baton.id_at(${row}.id, ${row}.n - 1) AND j.seq BETWEEN ${row}.seq AND ${row}.seq + ${row}.n - 1`;

const apart = (table: "live" | "done", shared: string): Statement =>
  write(
    `ranges-apart-${table}`,
    `WITH asked AS MATERIALIZED (
       SELECT a.seq, r.seq AS first FROM unnest($1::bigint[]) AS a (seq)
       CROSS JOIN LATERAL (${covering(table, "a.seq")}) AS r WHERE r.n > 1
     ),
     whole AS MATERIALIZED (
       SELECT seq, id, n, ${shared} FROM baton.${table}
       WHERE seq = ANY (ARRAY(SELECT DISTINCT first FROM asked)) ORDER BY seq FOR UPDATE
     ),
     first_one AS (UPDATE baton.${table} r SET n = 1 FROM whole WHERE r.seq = whole.seq),
     others AS (
       INSERT INTO baton.${table} (seq, id, ${shared})
       SELECT seq + place, baton.id_at(id, place), ${shared} FROM whole CROSS JOIN generate_series(1, n - 1) AS place
     )
     SELECT EXISTS (
       SELECT FROM asked WHERE NOT EXISTS (SELECT FROM whole w WHERE w.seq = asked.first AND w.seq + w.n > asked.seq)
     ) AS changed`,
  );
export const LIVE_APART = apart("live", LIVE_SHARED);
const DONE_APART = apart("done", DONE_SHARED);

/**
 * Takes the ranges of these jobs apart: each of them that is in the table has a row of its own afterwards, and keeps
 * it. Starts again if a range was cut between the look and the lock.
 */
export async function takeApart(
  db: Queryable,
  seqs: readonly number[],
  table: "live" | "done" = "live",
): Promise<void> {
  if (seqs.length === 0) return;
  const statement = table === "live" ? LIVE_APART : DONE_APART;
  const values = [int8s(seqs)];
  for (;;) {
    const [row] = await db.query<{ changed: boolean }>(statement, values);
    if (!row!.changed) return;
  }
}
