/** Reads a stream of server-sent events across broken connections, and resumes it each time after the last event. */

import { createParser } from "eventsource-parser";
import type { EventSourceMessage } from "eventsource-parser";
import type { Clock } from "../../platform/clock.ts";
import { BatonClientError } from "../client-error.ts";

export type { EventSourceMessage } from "eventsource-parser";

export interface Resumable<Event> {
  /** Opens it behind what was read; rejects with what the node said. */
  readonly open: (signal: AbortSignal) => Promise<AsyncIterable<string>>;
  /** What a message says, and none if it was read before. It is for the reader to remember how far it is. */
  readonly read: (message: EventSourceMessage) => readonly Event[];
  /** Whether nothing follows. */
  readonly isEnd?: (event: Event) => boolean;
  /** In words, for a stream that ended and should not have. */
  readonly endedEarly: string;
}

export interface ResumeOptions {
  readonly signal?: AbortSignal | undefined;
  /** How long to go on trying while nothing gets through. */
  readonly giveUpAfterMs: number;
  readonly clock: Clock;
}

const FIRST_DELAY_MS = 100;
const DELAY_MS_MAX = 2_000;

/** Ends with the last event, or silently when the signal fires. */
export async function* resumed<Event>(
  stream: Resumable<Event>,
  { signal, giveUpAfterMs, clock }: ResumeOptions,
): AsyncGenerator<Event> {
  const stop = new AbortController();
  const forward = (): void => stop.abort();
  signal?.addEventListener("abort", forward, { once: true });
  if (signal?.aborted) forward();
  let troubleSince: number | null = null;
  let delayMs = FIRST_DELAY_MS;
  try {
    while (!stop.signal.aborted) {
      let trouble = new BatonClientError("UNREACHABLE", stream.endedEarly);
      try {
        for await (const message of messages(await stream.open(stop.signal))) {
          troubleSince = null;
          delayMs = FIRST_DELAY_MS;
          for (const event of stream.read(message)) {
            yield event;
            if (stream.isEnd?.(event)) return;
          }
        }
      } catch (error) {
        if (stop.signal.aborted) return;
        if (!mayPass(error)) throw error;
        trouble = error;
      }
      troubleSince ??= clock.monotonic();
      if (clock.monotonic() - troubleSince >= giveUpAfterMs) throw trouble;
      await clock.sleep(delayMs, stop.signal);
      delayMs = Math.min(delayMs * 2, DELAY_MS_MAX);
    }
  } finally {
    signal?.removeEventListener("abort", forward);
    stop.abort();
  }
}

function mayPass(error: unknown): error is BatonClientError {
  if (!(error instanceof BatonClientError)) return false;
  const { code, status } = error;
  if (status === null) return code === "UNREACHABLE" || code === "TIMEOUT";
  return status >= 500 || status === 429 || status === 408;
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
