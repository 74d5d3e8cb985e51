/** Following a job's event stream across broken connections and restarts of the node. */

import { createParser } from "eventsource-parser";
import type { EventSourceMessage } from "eventsource-parser";
import type { JobErrorBody, LogLineBody } from "../api/job-body.ts";
import type { JobStatus } from "../core/job.ts";
import type { Clock } from "../platform/clock.ts";
import { BatonClientError } from "./error.ts";

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

export interface FollowOptions {
  /** Opens the stream behind a sequence number; rejects with what the node said. */
  readonly open: (after: number, signal: AbortSignal) => Promise<AsyncIterable<string>>;
  readonly after: number;
  readonly signal?: AbortSignal;
  /** How long to go on trying while nothing gets through. */
  readonly giveUpAfterMs: number;
  readonly clock: Clock;
}

const FIRST_DELAY_MS = 100;
const DELAY_MS_MAX = 2_000;

/** Each log line once and in order; ends with `end`, or silently when the signal fires. */
export async function* follow(options: FollowOptions): AsyncGenerator<FollowEvent> {
  const { clock } = options;
  const stop = new AbortController();
  const forward = (): void => stop.abort();
  options.signal?.addEventListener("abort", forward, { once: true });
  if (options.signal?.aborted) forward();
  let seen = options.after;
  let progress = "";
  let troubleSince: number | null = null;
  let delayMs = FIRST_DELAY_MS;
  try {
    while (!stop.signal.aborted) {
      let trouble = new BatonClientError(
        "UNREACHABLE",
        "the node ended the stream before the job was finished",
      );
      try {
        for await (const message of messages(await options.open(seen, stop.signal))) {
          troubleSince = null;
          delayMs = FIRST_DELAY_MS;
          const event = eventOf(message);
          if (event === null) continue;
          if (event.event === "log") {
            if (event.line.seq <= seen) continue;
            seen = event.line.seq;
          } else if (event.event === "progress") {
            if (message.data === progress) continue;
            progress = message.data;
          }
          yield event;
          if (event.event === "end") return;
        }
      } catch (error) {
        if (stop.signal.aborted) return;
        if (!mayPass(error)) throw error;
        trouble = error;
      }
      troubleSince ??= clock.monotonic();
      if (clock.monotonic() - troubleSince >= options.giveUpAfterMs) throw trouble;
      await clock.sleep(delayMs, stop.signal);
      delayMs = Math.min(delayMs * 2, DELAY_MS_MAX);
    }
  } finally {
    options.signal?.removeEventListener("abort", forward);
    stop.abort();
  }
}

function mayPass(error: unknown): error is BatonClientError {
  if (!(error instanceof BatonClientError)) return false;
  return error.status === null
    ? error.code === "UNREACHABLE" || error.code === "TIMEOUT"
    : error.status >= 500;
}

async function* messages(chunks: AsyncIterable<string>): AsyncGenerator<EventSourceMessage> {
  let ready: EventSourceMessage[] = [];
  const parser = createParser({ onEvent: (message) => ready.push(message) });
  for await (const chunk of chunks) {
    parser.feed(chunk);
    const batch = ready;
    ready = [];
    yield* batch;
  }
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
