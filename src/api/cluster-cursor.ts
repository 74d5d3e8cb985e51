/**
 * The cursor of a list of the whole cluster: for each node the cursor of the current page, and the last job taken from
 * it. A node that is missing could not be reached when the list began, and is left out until the list is started again.
 */

import { BatonError } from "../core/errors.ts";

export interface Place {
  /** Of the node's own list; null for its beginning. */
  readonly cursor: string | null;
  /** Null: nothing of that page was taken yet. */
  readonly last: string | null;
  /** How many were taken from that page. */
  readonly taken: number;
}

export type ClusterCursor = ReadonlyMap<string, Place>;

export function writeCursor(places: ClusterCursor): string {
  const rows = [...places].map(([node, { cursor, last, taken }]) => [node, cursor, last, taken]);
  return Buffer.from(JSON.stringify(rows)).toString("base64url");
}

export function readCursor(text: string): ClusterCursor {
  try {
    const rows = JSON.parse(Buffer.from(text, "base64url").toString("utf8")) as unknown[];
    return new Map(rows.map(placeOf));
  } catch {
    throw new BatonError(
      "BAD_REQUEST",
      '"cursor" is not the next_cursor of an earlier answer; leave it out to start at the newest',
      { field: "cursor" },
    );
  }
}

function placeOf(row: unknown): [string, Place] {
  const [node, cursor, last, taken] = row as unknown[];
  const texts = [cursor, last].every((value) => value === null || typeof value === "string");
  if (typeof node !== "string" || !texts || !Number.isSafeInteger(taken) || (taken as number) < 0) {
    throw new TypeError("not a place");
  }
  return [node, { cursor: cursor as string | null, last: last as string | null, taken: taken as number }];
}
