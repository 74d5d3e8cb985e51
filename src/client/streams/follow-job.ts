/** The log of a job as a stream that can be resumed, also at another node. */

import type { JobErrorBody, LogLineBody } from "../../api/bodies/job-body.ts";
import type { JobStatus } from "../../core/jobs/job.ts";
import type { EventSourceMessage, Resumable } from "./resumable-stream.ts";

interface ProgressEvent {
  readonly event: "progress";
  readonly progress: number | null;
  readonly message: string | null;
}

interface EndEvent {
  readonly event: "end";
  readonly status: JobStatus | "deleted";
  readonly error: JobErrorBody | null;
}

export type FollowEvent = { readonly event: "log"; readonly line: LogLineBody } | ProgressEvent | EndEvent;

/** Opens the stream behind a sequence number; rejects with what the node said. */
type Open = (after: number, signal: AbortSignal) => Promise<AsyncIterable<string>>;

/** Each log line once and in order; ends with `end`. */
export function jobStream(open: Open, after: number): Resumable<FollowEvent> {
  let seen = after;
  let progress = "";
  const read = (message: EventSourceMessage): FollowEvent[] => {
    const event = eventOf(message);
    if (event === null) return [];
    if (event.event === "log") {
      if (event.line.seq <= seen) return [];
      seen = event.line.seq;
    } else if (event.event === "progress") {
      if (message.data === progress) return [];
      progress = message.data;
    }
    return [event];
  };
  return {
    open: (signal) => open(seen, signal),
    read,
    isEnd: ({ event }) => event === "end",
    endedEarly: "the node ended the stream before the job was finished",
  };
}

/** What the node says of the job is taken at its word; null for kinds of a newer version. */
function eventOf(message: EventSourceMessage): FollowEvent | null {
  const data: unknown = JSON.parse(message.data);
  switch (message.event ?? "message") {
    case "log":
      return { event: "log", line: data as LogLineBody };
    case "progress":
      return { event: "progress", ...(data as Omit<ProgressEvent, "event">) };
    case "end": {
      const { status, error } = data as EndEvent;
      return { event: "end", status, error };
    }
    default:
      return null;
  }
}
