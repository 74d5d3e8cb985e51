/** The rows with which claims and dispatches return jobs, and their conversion to jobs. */

import { type JobId, Uuids } from "../../../../core/ids.ts";
import type { ClaimedJob } from "../../../store.ts";
import { jobsOf, PAYLOAD_END, type Ref } from "../ranges.ts";
import type { StoreCache } from "../store-cache.ts";

/** Of a job `j`. The trace is appended for the few jobs that have one: a separate column would cost all of them. */
export const SHAPE =
  "concat_ws(' ', j.kind, j.priority, j.birthplace, j.max_attempts, coalesce(j.timeout_ms, 0), j.trace)";
/** Of the row `t` of `taken`, with the values of the run. */
export const COUNTERS = "concat_ws(' ', t.job_epoch, t.attempts, t.failures, t.interruptions, t.crashes)";

/**
 * Each column costs half a microsecond for each row on the server and as much here, so repeated values are null: jobs of
 * one shape tend to be next to each other. A range is one row, with the payloads of all its jobs. A job that ran before has
 * a second row with its due time and counters.
 */
export type Row = [
  seq: number | null,
  uuid: string | null,
  payload: string,
  createdAt: number,
  runAt: number | null,
  /** Null for the expected shape. */
  shape: string | null,
  counters: string | null,
  /** Jobs of a range; null for a single job. */
  n: number | null,
];
/** In a row that stands for no job, before what it says. */
export const NO_JOB = "NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL";

/** The ranges of `taken`; `others` are more columns. Ids are in the order of the jobs. */
export const claimedRanges = (shape: string, others: string): string => `
  SELECT t.seq, t.id, all_of_it.payloads, j.created_at, t.run_at, ${shape}, NULL::text, t.n, ${others}
  FROM taken t JOIN baton.job j ON j.id = t.id CROSS JOIN LATERAL (
    SELECT string_agg(payload, '${PAYLOAD_END}') AS payloads
    FROM (SELECT j.payload FROM baton.job j WHERE ${jobsOf("t")} ORDER BY j.id) AS in_order
  ) AS all_of_it
  WHERE t.n > 1`;

/** The rows of `taken`. The parameters from this number on are the expected shape; `others` are more columns. */
export const claimedRows = (shape: number, others: string): string => {
  const unexpected = `CASE WHEN (j.kind, j.priority, j.birthplace, j.max_attempts)
          = ($${shape}::int, $${shape + 1}::int, $${shape + 2}::int, $${shape + 3}::int)
        AND coalesce(j.timeout_ms, 0) = $${shape + 4}::bigint AND j.trace IS NULL THEN NULL ELSE ${SHAPE} END`;
  return `
  SELECT j.seq, j.id, j.payload, j.created_at, j.run_at, ${unexpected}, NULL::text, NULL::smallint, ${others}
  FROM baton.job j WHERE j.id = ANY (ARRAY(SELECT id FROM taken WHERE n = 1))
  UNION ALL ${claimedRanges(unexpected, others)}
  UNION ALL
  SELECT t.seq, NULL, NULL, NULL, t.run_at, NULL, ${COUNTERS}, NULL, ${others}
  FROM taken t WHERE t.job_epoch > 1 OR t.interruptions > 0`;
};

/** The values that similar jobs share. A timeout of 0 stands for none. */
export type Shape = readonly [
  kind: number,
  priority: number,
  birthplace: number,
  maxAttempts: number,
  timeoutMs: number,
];
const NO_SHAPE: Shape = [0, 0, 0, 0, 0];
const SHAPE_LENGTH = NO_SHAPE.length;

type Counters = readonly [
  jobEpoch: number,
  attempts: number,
  failures: number,
  interruptions: number,
  crashes: number,
];
const FIRST_RUN: Counters = [1, 1, 0, 0, 0];

type AnyRow = readonly [...Row, ...unknown[]];
type Holder = Pick<ClaimedJob, "lease" | "leaderEpoch">;

/** A row with a job, or with a range of them. */
interface Found {
  readonly row: AnyRow;
  readonly shape: Shape;
  readonly trace: string | null;
  readonly dueAt: number;
  readonly counters: Counters;
}

export class ClaimedRows {
  readonly #cache: StoreCache;
  #shape = NO_SHAPE;

  constructor(cache: StoreCache) {
    this.#cache = cache;
  }

  /** The shape of the last job: the next ones are likely to have it too. */
  get expected(): Shape {
    return this.#shape;
  }

  /** In the order of their line. Rows without a job are skipped. */
  async jobs(
    rows: readonly AnyRow[],
    expected: Shape,
    { lease, leaderEpoch }: Holder,
  ): Promise<ClaimedJob[]> {
    const jobs: ClaimedJob[] = [];
    for (const { row, shape, trace, dueAt, counters } of await this.#inOrder(rows, expected)) {
      const [seq, uuid, payload, createdAt, , , , n] = row;
      const [kind, priority, birthplace, maxAttempts, timeoutMs] = shape;
      const { queue, task } = this.#cache.kind(kind);
      const born = this.#cache.name(birthplace);
      const [jobEpoch, attempts, failures, interruptions, crashes] = counters;
      // A literal for each: what spreading an object into another costs is most of the work.
      const job = (id: string, text: string, ref: Ref): ClaimedJob => ({
        id: `${born}-${id}` as JobId,
        jobEpoch,
        lease,
        ref,
        task,
        queue,
        priority,
        payload: text,
        attempts,
        failures,
        interruptions,
        crashes,
        maxAttempts,
        timeoutMs: timeoutMs === 0 ? null : timeoutMs,
        createdAt,
        runAt: dueAt,
        leaderEpoch,
        trace,
      });
      if (n === null) {
        jobs.push(job(uuid!, payload, seq!));
        continue;
      }
      const uuids = new Uuids(uuid!);
      const payloads = payload.split(PAYLOAD_END);
      for (let place = 0; place < payloads.length; place++)
        jobs.push(job(uuids.next(), payloads[place]!, { row: seq!, seq: seq! + place }));
    }
    return jobs;
  }

  /** The rows with jobs. Ranges do not overlap, so that their order is that of the jobs. */
  async #inOrder(rows: readonly AnyRow[], expected: Shape): Promise<Found[]> {
    const shapes = new Map<string | null, { readonly shape: Shape; readonly trace: string | null }>();
    shapes.set(null, { shape: expected, trace: null });
    for (const row of rows) if (!shapes.has(row[5])) shapes.set(row[5], shapeAndTrace(row[5]!));
    const known = [...shapes.values()].map(({ shape }) => shape).filter((shape) => shape !== NO_SHAPE);
    await this.#cache.learnKinds(new Set(known.map((shape) => shape[0])));
    await this.#cache.learnNames(new Set(known.map((shape) => shape[2])));
    const earlier = new Map<number, AnyRow>();
    for (const row of rows) if (row[6] !== null) earlier.set(row[0]!, row);
    const found: Found[] = [];
    for (const row of rows) {
      const [seq, uuid, , createdAt, runAt, given, , n] = row;
      if (uuid === null) continue;
      const before = n === null ? earlier.get(seq!) : undefined;
      const { shape, trace } = shapes.get(given)!;
      this.#shape = shape;
      const dueAt = before ? before[4]! : (runAt ?? createdAt);
      found.push({ row, shape, trace, dueAt, counters: before ? numbers(before[6]!) : FIRST_RUN });
    }
    return found.sort(inOrder);
  }
}

function shapeAndTrace(text: string): { readonly shape: Shape; readonly trace: string | null } {
  const parts = text.split(" ");
  const trace = parts.splice(SHAPE_LENGTH).join(" ");
  return { shape: parts.map(Number) as unknown as Shape, trace: trace === "" ? null : trace };
}

function numbers(text: string): Counters {
  return text.split(" ").map(Number) as unknown as Counters;
}

function inOrder(a: Found, b: Found): number {
  return b.shape[1] - a.shape[1] || a.dueAt - b.dueAt || a.row[0]! - b.row[0]!;
}
