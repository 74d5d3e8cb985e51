/** Server-sent events as text, with a comment at intervals as a keep-alive. */

import type { ServerEvent } from "../../core/server-event.ts";
import type { Clock } from "../../platform/clock.ts";

/** Below the shortest idle time-outs of proxies (30 s); a reader's own may be longer. */
export const HEARTBEAT_MS = 15_000;
export const HEARTBEAT = ":\n\n";

/** JSON has no raw line breaks, so one data line holds it. */
export function format(event: ServerEvent): string {
  const id = event.id === undefined ? "" : `id: ${event.id}\n`;
  return `${id}event: ${event.event}\ndata: ${JSON.stringify(event.data)}\n\n`;
}

/** For a reader that is not on a socket of ours. Ends with the signal, with the events, or when it is returned. */
export async function* eventBytes(
  events: AsyncIterable<ServerEvent>,
  clock: Clock,
  signal: AbortSignal,
  onEnd: () => void,
): AsyncGenerator<Buffer, void> {
  const iterator = events[Symbol.asyncIterator]();
  try {
    for (let next = iterator.next(); !signal.aborted;) {
      next.catch(() => {}); // seen below, unless the reader leaves first
      const waited = new AbortController();
      const beat = clock.sleep(HEARTBEAT_MS, AbortSignal.any([signal, waited.signal])).then(() => null);
      const come = await Promise.race([next, beat]).finally(() => waited.abort());
      if (signal.aborted) return;
      if (come === null) yield Buffer.from(HEARTBEAT);
      else if (come.done) return;
      else {
        yield Buffer.from(format(come.value));
        next = iterator.next();
      }
    }
  } finally {
    onEnd();
    // Not waited for: it ends with its signal.
    void Promise.resolve(iterator.return?.()).catch(() => {});
  }
}
