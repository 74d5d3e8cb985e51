/**
 * One page of a list of jobs, for both stores: the matching jobs may be anywhere among millions, so a page walks a
 * bounded number of rows from the newest on, a small piece first. A short page has a cursor to continue with.
 *
 * Each store decides which rows are walked, and how.
 */

import { BatonError } from "../core/errors.ts";
import type { JobStatus } from "../core/jobs/job.ts";
import { listedFilter } from "../core/jobs/job-fields.ts";
import { type JobRow, STATUS } from "./job-row.ts";
import type { JobQuery } from "./jobs.ts";
import { call, type Script } from "./script.ts";

/** Rows that one page may read. */
const SCAN_MAX = 10_000;
/** The order of arrival and `created_at` may differ by this much: concurrent submits, or a clock that was set back. */
const SEEK_MARGIN_MS = 2_000;

type OrLater<T> = T | Promise<T>;

/** How a store walks its rows. */
export interface ListSource {
  /** Rows to read in the first piece. */
  readonly scanFirst: number;
  /** Numbers of the queues and tasks. */
  kinds(queue: string | undefined, task: string | undefined): OrLater<readonly number[]>;
  /** The first job that was created at or after an instant, approximately (SEEK_MARGIN_MS); null if there is none. */
  seek(at: number): OrLater<number | null>;
  /** The rows to walk for a status. A filter with a side table walks that one. */
  walkFor(status: JobStatus | undefined): OrLater<string>;
  /**
   * Matching rows in order, with `seq`. Each has in `walked` the last row that was read, if there may be more after it.
   * If none matches, one row without `seq`.
   */
  read(walk: string, piece: Piece): OrLater<readonly JobRow[]>;
}

export interface Piece {
  /** Only rows between these numbers. */
  readonly before: number;
  readonly after: number;
  /** Rows to read, and the maximum number of matches. */
  readonly scan: number;
  readonly limit: number;
  /** Null for all, as `status` and `errorCode`. */
  readonly kinds: readonly number[] | null;
  readonly since: number;
  readonly until: number;
  readonly status: number | null;
  readonly errorCode: string | null;
  /** The value of a filter with a side table. */
  readonly listed: string | null;
}

export interface FoundRows {
  readonly rows: readonly JobRow[];
  readonly cursor: string | null;
}

export function* listPage(query: JobQuery, source: ListSource): Script<FoundRows> {
  const { limit, queue, task, since, until, status } = query;
  const start = cursorSeq(query);
  const byKind = queue !== undefined || task !== undefined;
  const listed = listedFilter(query);
  const [kinds, first, end, walk] = (yield [
    () => (byKind ? source.kinds(queue, task) : null),
    () => (since === undefined ? null : source.seek(since - SEEK_MARGIN_MS)),
    () => (until === undefined ? null : source.seek(until + SEEK_MARGIN_MS)),
    () => listed?.name ?? source.walkFor(status),
  ]) as [readonly number[] | null, number | null, number | null, string];
  if (kinds?.length === 0) return { rows: [], cursor: null };
  const filter = {
    after: first === null ? 0 : first - 1,
    kinds,
    since: since ?? 0,
    until: until ?? Number.MAX_SAFE_INTEGER,
    status: status === undefined ? null : STATUS[status],
    errorCode: query.errorCode ?? null,
    listed: listed?.text ?? null,
  };
  const { scanFirst } = source;
  const rows: JobRow[] = [];
  let before = Math.min(start, end ?? Number.MAX_SAFE_INTEGER);
  let left = SCAN_MAX;
  // Without a filter, the page is as long as the walk.
  const filtered = kinds !== null || filter.status !== null || filter.errorCode !== null;
  for (let scan = filtered ? scanFirst : limit; ; scan = scan < scanFirst ? scanFirst : left) {
    const piece = { ...filter, before, scan: Math.max(scan, limit), limit: limit - rows.length };
    const found = yield* call(() => source.read(walk, piece));
    rows.push(...found.filter((row) => row["seq"] !== null));
    left -= scan;
    if (rows.length >= limit) return { rows, cursor: String(rows.at(-1)!["seq"]) };
    const walked = (found[0]?.["walked"] as number | null | undefined) ?? null;
    if (walked === null || left <= 0) return { rows, cursor: walked === null ? null : String(walked) };
    before = walked;
  }
}

/** Jobs of the page have lower numbers. */
function cursorSeq({ cursor }: JobQuery): number {
  if (cursor === undefined) return Number.MAX_SAFE_INTEGER;
  if (/^[1-9][0-9]{0,15}$/.test(cursor)) return Number(cursor);
  throw new BatonError(
    "BAD_REQUEST",
    "cursor is not one that a list gave; leave it out to start at the newest",
    { field: "cursor" },
  );
}
