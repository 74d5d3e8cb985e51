/**
 * One page of a list of jobs, for both stores: the matching jobs may be anywhere among millions, so a page walks a
 * bounded number of rows from the newest on, a small piece first. A short page has a cursor to continue with.
 *
 * Each store decides which rows are walked, and how.
 */

import { BatonError } from "../core/errors.ts";
import type { JobRow } from "./job-row.ts";
import type { JobQuery } from "./jobs.ts";
import { call, type Script } from "./script.ts";

/** Rows that one page may read. */
const SCAN_MAX = 10_000;
/** The order of arrival and `created_at` may differ by this much: concurrent submits, or a clock that was set back. */
export const SEEK_MARGIN_MS = 2_000;

export interface Piece {
  /** Only rows with a lower number. */
  readonly before: number;
  /** `scan`: rows to read. `limit`: the maximum number of matches. */
  readonly scan: number;
  readonly limit: number;
}

export interface PageWalk {
  readonly before: number;
  readonly scanFirst: number;
  /** Without a filter, the page is as long as the walk. */
  readonly filtered: boolean;
  /**
   * Matching rows in order, with `seq`. Each has in `walked` the last row that was read, if there may be more after it.
   * If none matches, one row without `seq`.
   */
  readonly read: (piece: Piece) => readonly JobRow[] | Promise<readonly JobRow[]>;
}

export interface FoundRows {
  readonly rows: readonly JobRow[];
  readonly cursor: string | null;
}

export function* walkPage(limit: number, walk: PageWalk): Script<FoundRows> {
  const { scanFirst, filtered, read } = walk;
  const rows: JobRow[] = [];
  let { before } = walk;
  let left = SCAN_MAX;
  for (let scan = filtered ? scanFirst : limit; ; scan = scan < scanFirst ? scanFirst : left) {
    const piece = { before, scan: Math.max(scan, limit), limit: limit - rows.length };
    const found = yield* call(() => read(piece));
    rows.push(...found.filter((row) => row["seq"] !== null));
    left -= scan;
    if (rows.length >= limit) return { rows, cursor: String(rows.at(-1)!["seq"]) };
    const walked = (found[0]?.["walked"] as number | null | undefined) ?? null;
    if (walked === null || left <= 0) return { rows, cursor: walked === null ? null : String(walked) };
    before = walked;
  }
}

/** Jobs of the page have lower numbers. */
export function cursorSeq({ cursor }: JobQuery): number {
  if (cursor === undefined) return Number.MAX_SAFE_INTEGER;
  if (/^[1-9][0-9]{0,15}$/.test(cursor)) return Number(cursor);
  throw new BatonError(
    "BAD_REQUEST",
    "cursor is not one that a list gave; leave it out to start at the newest",
    { field: "cursor" },
  );
}
