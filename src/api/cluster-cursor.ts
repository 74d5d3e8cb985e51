/**
 * The cursor of a list that is collected from all nodes: for each node, the place in its own list. A node that is missing
 * in it has no more, or could not be reached when the list began; it is left out until the list is started again.
 */

import { z } from "zod";
import { BatonError } from "../core/errors.ts";

/** Null for the end: no node has more. */
export function writeCursor(places: ReadonlyMap<string, unknown>): string | null {
  if (places.size === 0) return null;
  return Buffer.from(JSON.stringify([...places])).toString("base64url");
}

export function readCursor<Place>(text: string, place: z.ZodType<Place>): ReadonlyMap<string, Place> {
  try {
    const rows = JSON.parse(Buffer.from(text, "base64url").toString("utf8")) as unknown;
    return new Map(z.array(z.tuple([z.string(), place])).parse(rows));
  } catch {
    throw badCursor();
  }
}

export function badCursor(): BatonError {
  return new BatonError(
    "BAD_REQUEST",
    '"cursor" is not the next_cursor of an earlier answer to the same query; leave it out to start at the newest',
    { field: "cursor" },
  );
}
