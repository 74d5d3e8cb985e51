/**
 * Follows the cluster across broken connections. Each new connection begins with the overview, so nothing has to be
 * resumed.
 */

import type { JournalEntryBody } from "../../api/bodies/journal-body.ts";
import type { OverviewBody } from "../../api/bodies/overview-body.ts";
import { resumed, type EventSourceMessage, type ResumeOptions } from "./resumable-stream.ts";

export type LiveEvent =
  | { readonly event: "overview"; readonly overview: OverviewBody }
  | { readonly event: "journal"; readonly entry: JournalEntryBody };

export interface LiveOptions {
  readonly signal?: AbortSignal | undefined;
  /** How long to go on trying while no node can be reached. */
  readonly giveUpAfterMs?: number;
}

interface FollowLive extends ResumeOptions {
  readonly open: (signal: AbortSignal) => Promise<AsyncIterable<string>>;
}

/** Ends silently when the signal fires. */
export function followLive({ open, ...options }: FollowLive): AsyncGenerator<LiveEvent> {
  return resumed<LiveEvent>({ open, read, endedEarly: "the node ended the stream" }, options);
}

function read({ event, data }: EventSourceMessage): LiveEvent[] {
  if (event === "overview") return [{ event, overview: JSON.parse(data) as OverviewBody }];
  if (event === "journal") return [{ event, entry: JSON.parse(data) as JournalEntryBody }];
  return [];
}
