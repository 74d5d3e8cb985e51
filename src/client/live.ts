/** The cluster as it changes, from whichever node can be reached. */

import type { JournalEntryBody } from "../api/journal-body.ts";
import type { OverviewBody } from "../cli/top/bodies.ts";
import { resumed, type EventSourceMessage, type ResumeOptions } from "./resume.ts";

export type LiveEvent =
  | { readonly event: "overview"; readonly overview: OverviewBody }
  | { readonly event: "journal"; readonly entry: JournalEntryBody };

export interface LiveOptions extends ResumeOptions {
  readonly open: (signal: AbortSignal) => Promise<AsyncIterable<string>>;
}

/** Begins with an overview, and again after each connection that broke. Ends silently when the signal fires. */
export function liveOf({ open, ...options }: LiveOptions): AsyncGenerator<LiveEvent> {
  const endedEarly = "the node ended the stream of what happens";
  return resumed<LiveEvent>({ open, read, endedEarly }, options);
}

/** What the node says is taken at its word; nothing for kinds of a newer version. */
function read({ event, data }: EventSourceMessage): readonly LiveEvent[] {
  if (event === "overview") return [{ event, overview: JSON.parse(data) as OverviewBody }];
  if (event === "journal") return [{ event, entry: JSON.parse(data) as JournalEntryBody }];
  return [];
}
