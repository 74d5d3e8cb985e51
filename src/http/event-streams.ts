/** Server-sent events: one writer for all of them, and the list of those that are open, to end them when we stop. */

import { once } from "node:events";
import type { OutgoingHttpHeaders, ServerResponse } from "node:http";
import type { FastifyReply } from "fastify";
import type { EventReply, ServerEvent } from "../api/operation.ts";
import type { Clock } from "../platform/clock.ts";
import type { Log } from "../platform/log.ts";

/** Below the shortest idle time-outs of proxies (30 s); a reader's own may be longer. */
export const HEARTBEAT_MS = 15_000;

export class EventStreams {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #open = new Map<AbortController, Promise<void>>();
  #ending = false;

  constructor(options: { readonly clock: Clock; readonly log: Log }) {
    this.#clock = options.clock;
    this.#log = options.log;
  }

  get size(): number {
    return this.#open.size;
  }

  send(reply: FastifyReply, events: EventReply["events"]): void {
    const response = reply.raw;
    const headers = reply.getHeaders() as OutgoingHttpHeaders;
    reply.hijack();
    const stop = new AbortController();
    if (this.#ending) stop.abort();
    response.once("close", () => stop.abort());
    response.writeHead(200, {
      ...headers,
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-cache, no-transform",
      // A finished stream takes its socket along, so that a drain has nothing left to wait for.
      connection: "close",
      "x-accel-buffering": "no",
    });
    response.flushHeaders();
    const writing = this.#write(response, events(stop.signal), stop.signal)
      .catch((error: unknown) => {
        // The headers are gone: a cut connection is all we can still say, and the reader resumes.
        this.#log.error({ error }, "an event stream broke");
        response.destroy();
      })
      .finally(() => this.#open.delete(stop));
    this.#open.set(stop, writing);
  }

  /** Ends all of them without their `end` event: readers go on elsewhere behind the last id that they saw. */
  async endAll(): Promise<void> {
    this.#ending = true;
    for (const stop of this.#open.keys()) stop.abort();
    await Promise.all(this.#open.values());
  }

  async #write(
    response: ServerResponse,
    events: AsyncIterable<ServerEvent>,
    signal: AbortSignal,
  ): Promise<void> {
    let calledOff = this.#clock.after(HEARTBEAT_MS, beat);
    const clock = this.#clock;
    function beat(): void {
      // A reader that took nothing for a whole beat is gone or stuck, and would hold our memory.
      if (response.writableNeedDrain) return void response.destroy();
      response.write(":\n\n");
      calledOff = clock.after(HEARTBEAT_MS, beat);
    }
    try {
      for await (const event of events) {
        if (signal.aborted) break;
        if (!response.write(format(event)) && !response.destroyed) await drained(response, signal);
      }
    } finally {
      calledOff();
      response.end();
    }
  }
}

async function drained(response: ServerResponse, signal: AbortSignal): Promise<void> {
  try {
    await once(response, "drain", { signal });
  } catch {
    // Aborted: the reader left or we stop, and the loop looks at the signal.
  }
}

/** JSON has no raw line breaks, so one data line holds it. */
export function format(event: ServerEvent): string {
  const id = event.id === undefined ? "" : `id: ${event.id}\n`;
  return `${id}event: ${event.event}\ndata: ${JSON.stringify(event.data)}\n\n`;
}
