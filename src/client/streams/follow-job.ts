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

type Open = (after: number, signal: AbortSignal) => Promise<AsyncIterable<string>>;

export function jobStream(open: Open, after: number): Resumable<FollowEvent> {
  let seen = after;
  let progress = "";
  /** What the node says of the job is taken at its word; kinds of a newer version are passed over. */
  const read = ({ event, data }: EventSourceMessage): FollowEvent[] => {
    if (event === "log") {
      const line = JSON.parse(data) as LogLineBody;
      if (line.seq <= seen) return [];
      seen = line.seq;
      return [{ event, line }];
    }
    if (event === "progress") {
      if (data === progress) return [];
      progress = data;
      return [{ ...(JSON.parse(data) as ProgressEvent), event }];
    }
    if (event !== "end") return [];
    const { status, error } = JSON.parse(data) as EndEvent;
    return [{ event, status, error }];
  };
  return {
    open: (signal) => open(seen, signal),
    read,
    isEnd: ({ event }) => event === "end",
    endedEarly: "the node ended the stream before the job was finished",
  };
}
