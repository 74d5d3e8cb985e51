/** Server-sent events as bytes: the one place that writes them, for readers over HTTP and for other nodes. */

import { Readable } from "node:stream";
import { BatonError } from "../../core/errors.ts";
import type { ServerEvent } from "../../platform/feed.ts";
import type { Clock } from "../../platform/clock.ts";
import type { EventReply } from "../operation.ts";

/** Below the shortest idle time-outs of proxies (30 s); a reader's own may be longer. */
export const HEARTBEAT_MS = 15_000;
const HEARTBEAT = ":\n\n";

export const EVENT_HEADERS = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache, no-transform",
} as const;

/** JSON has no raw line breaks, so one data line holds it. */
function format(event: ServerEvent): string {
  const id = event.id === undefined ? "" : `id: ${event.id}\n`;
  return `${id}event: ${event.event}\ndata: ${JSON.stringify(event.data)}\n\n`;
}

/**
 * Events that come while the reader is busy are read as one piece, and no more of them are taken than one piece holds. A
 * comment keeps the connection alive. Ends with the events, with `stop`, or when it is returned. It stops a reader that
 * has left something unread at a heartbeat: it is gone or stuck, and would hold memory.
 */
export function eventBytes(
  events: EventReply["events"],
  clock: Clock,
  stop: AbortController,
): AsyncIterableIterator<Buffer> {
  const { signal } = stop;
  async function* texts(): AsyncGenerator<string> {
    let callOff = clock.after(HEARTBEAT_MS, beat);
    function beat(): void {
      if (bytes.readableLength > 0) return stop.abort(new StuckReader());
      bytes.push(HEARTBEAT);
      callOff = clock.after(HEARTBEAT_MS, beat);
    }
    try {
      for await (const event of events(signal)) {
        if (signal.aborted) return;
        yield format(event);
      }
    } finally {
      callOff();
    }
  }
  const bytes = Readable.from(texts(), { objectMode: false });
  const pieces = bytes[Symbol.asyncIterator]() as AsyncIterableIterator<Buffer>;
  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    next: () => pieces.next(),
    // A read may be waiting for an event that never comes: the events are ended first.
    return: () => {
      stop.abort();
      return pieces.return!();
    },
  };
}

/** The header with which a reader resumes; null without one. `what` follows "must be". */
export function lastEventId(
  header: string | string[] | undefined,
  pattern: RegExp,
  what: string,
): string | null {
  if (header === undefined || header === "") return null;
  if (typeof header === "string" && pattern.test(header)) return header;
  throw new BatonError("BAD_REQUEST", `the header Last-Event-ID must be ${what}`, { field: "last-event-id" });
}

class StuckReader extends Error {
  override readonly message = `nothing was read for ${HEARTBEAT_MS} ms`;
}
