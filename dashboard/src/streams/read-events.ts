/**
 * Server-sent events with fetch: unlike EventSource it tells why it was refused, and sends where to go on.
 *
 * It is not `resumed` of the client, which ends at a refusal and reads event by event. A page shows when a connection opens
 * and breaks, waits for somebody to sign in, retries on request, takes all events of one piece together, and asks for a log
 * from time to time when it has no connection left to stream it.
 */

import { EventParser } from "../../../src/client/streams/event-parser.ts";
import { problemIn } from "../api/problem.ts";

export interface StreamEvent {
  readonly event: string;
  readonly id: string | null;
  readonly data: unknown;
}

export interface ReadOptions {
  readonly signal: AbortSignal;
  readonly lastEventId?: string;
  readonly onOpen?: () => void;
  /** All that came in one piece. */
  readonly onEvents: (events: readonly StreamEvent[]) => void;
}

/** Nodes give a sign of life every 15 s. Shorter than two of them, and a busy node looks like a dead one. */
const SILENCE_MS = 35_000;

/** Until the stream ends; rejects with a Problem when it was refused, and with what fetch says when it broke. */
export async function readEvents(url: string, options: ReadOptions): Promise<void> {
  const silent = new AbortController();
  let timer = setTimeout(() => silent.abort(), SILENCE_MS);
  const reply = await fetch(url, {
    headers: {
      accept: "text/event-stream",
      ...(options.lastEventId !== undefined && { "last-event-id": options.lastEventId }),
    },
    credentials: "same-origin",
    cache: "no-store",
    signal: AbortSignal.any([options.signal, silent.signal]),
  }).finally(() => clearTimeout(timer));
  if (!reply.ok || !reply.body) throw problemIn(reply.status, await reply.json().catch(() => null));
  options.onOpen?.();
  const parser = new EventParser();
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (;;) {
      timer = setTimeout(() => silent.abort(), SILENCE_MS);
      const { done, value } = await reader.read().finally(() => clearTimeout(timer));
      if (done) return;
      const come = parser.feed(value).map(({ event = "message", id = null, data }) => ({
        event,
        id,
        data: JSON.parse(data) as unknown,
      }));
      if (come.length > 0) options.onEvents(come);
    }
  } finally {
    void reader.cancel().catch(() => {});
  }
}
