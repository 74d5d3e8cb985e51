/** Reads a stream of server-sent events, and resumes it after a broken connection. It knows nothing of Node. */

import type { Clock } from "../../platform/clock.ts";
import { Backoff } from "../../platform/loop.ts";
import { CallError } from "../client-error.ts";
import { EventParser, type EventSourceMessage } from "./event-parser.ts";

export type { EventSourceMessage } from "./event-parser.ts";

/** Of every stream that is resumed after a broken connection. */
export interface StreamOptions {
  readonly signal?: AbortSignal;
  readonly giveUpAfterMs?: number;
  /** The stream broke and is tried again; once for each reason. */
  readonly onTrouble?: (error: CallError) => void;
}

export interface Resumable<Event> {
  /** Opens it behind what was read; rejects with what the node said. */
  readonly open: (signal: AbortSignal) => Promise<AsyncIterable<string>>;
  /** What a message says, and none if it was read before. It is for the reader to remember how far it is. */
  readonly read: (message: EventSourceMessage) => readonly Event[];
  readonly isEnd?: (event: Event) => boolean;
  readonly endedEarly: string;
}

const GIVE_UP_AFTER_MS = 30_000;
const FIRST_DELAY_MS = 100;
const DELAY_MS_MAX = 2_000;

/** Ends with the last event, or silently when the signal fires. */
export async function* resumed<Event>(
  stream: Resumable<Event>,
  { signal, giveUpAfterMs = GIVE_UP_AFTER_MS, onTrouble }: StreamOptions,
  clock: Pick<Clock, "monotonic" | "sleep">,
): AsyncGenerator<Event> {
  const left = new AbortController();
  const over = signal ? AbortSignal.any([signal, left.signal]) : left.signal;
  let troubleSince: number | null = null;
  let told: string | null = null;
  const backoff = new Backoff(FIRST_DELAY_MS, DELAY_MS_MAX);
  try {
    while (!over.aborted) {
      let failure = new CallError("UNREACHABLE", stream.endedEarly);
      try {
        for await (const message of messages(await stream.open(over))) {
          troubleSince = told = null;
          backoff.reset();
          for (const event of stream.read(message)) {
            yield event;
            if (stream.isEnd?.(event)) return;
          }
        }
      } catch (error) {
        if (over.aborted) return;
        if (!mayPass(error)) throw error;
        failure = error;
      }
      if (over.aborted) return;
      troubleSince ??= clock.monotonic();
      if (clock.monotonic() - troubleSince >= giveUpAfterMs) throw failure;
      if (told !== failure.message) onTrouble?.(failure);
      told = failure.message;
      await clock.sleep(backoff.next(), over);
    }
  } finally {
    left.abort();
  }
}

/** Whether another try may succeed: not after a refusal such as 401, nor after the client was closed. */
export function mayPass(error: unknown): error is CallError {
  if (!(error instanceof CallError)) return false;
  const { code, status } = error;
  if (status === null) return code === "UNREACHABLE" || code === "TIMEOUT";
  return status >= 500 || status === 429 || status === 408;
}

async function* messages(chunks: AsyncIterable<string>): AsyncGenerator<EventSourceMessage> {
  const parser = new EventParser();
  for await (const chunk of chunks) yield* parser.feed(chunk);
}
