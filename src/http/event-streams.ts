/** Server-sent events: one writer for all streams, and the list of open streams, to end them when the node stops. */

import { once } from "node:events";
import type { OutgoingHttpHeaders, ServerResponse } from "node:http";
import type { FastifyReply } from "fastify";
import { format, HEARTBEAT, HEARTBEAT_MS } from "../api/schema/event-bytes.ts";
import type { EventReply } from "../api/operation.ts";
import type { ServerEvent } from "../core/server-event.ts";
import type { Clock } from "../platform/clock.ts";
import type { Log } from "../platform/log.ts";

/** How often it is asked whether readers may stay. With the two seconds in which nodes hear of a revocation it is below five. */
const STAY_MS = 2_000;

export interface RelayHead {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Between two parts of a body. Shorter than it takes the peer to read a page from its disk, and good replies are cut. */
  readonly idleMs: number;
}

export class EventStreams {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #open = new Map<AbortController, Promise<void>>();
  /** Those whose readers came in by something that may be revoked. */
  readonly #watched = new Map<AbortController, () => boolean>();
  #callOff: (() => void) | null = null;
  #ending = false;

  constructor(options: { readonly clock: Clock; readonly log: Log }) {
    this.#clock = options.clock;
    this.#log = options.log;
  }

  get size(): number {
    return this.#open.size;
  }

  /** Ends when its reader may not stay any longer; they come back and are told why. */
  send(reply: FastifyReply, events: EventReply["events"], stays: (() => boolean) | null = null): void {
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
      .finally(() => this.#closed(stop));
    this.#opened(stop, writing, stays);
  }

  /** Ends all of them without their `end` event: readers go on elsewhere behind the last id that they saw. */
  async endAll(): Promise<void> {
    this.#ending = true;
    for (const stop of this.#open.keys()) stop.abort();
    await Promise.all(this.#open.values());
  }

  /**
   * Passes a body on as it comes, as fast as the reader takes it. One that is cut short cuts the connection: what was sent so
   * far must not be taken for the whole.
   */
  relay(
    reply: FastifyReply,
    head: RelayHead,
    body: AsyncIterable<Buffer>,
    stop: AbortController,
    stays: (() => boolean) | null = null,
  ): void {
    const response = reply.raw;
    const headers = { ...reply.getHeaders(), ...head.headers } as OutgoingHttpHeaders;
    const isEvents = String(headers["content-type"]).startsWith("text/event-stream");
    reply.hijack();
    if (this.#ending) stop.abort();
    response.once("close", () => stop.abort());
    if (isEvents) Object.assign(headers, { connection: "close", "x-accel-buffering": "no" });
    response.writeHead(head.status, headers);
    if (isEvents) response.flushHeaders();
    const relaying = this.#copy(response, body, stop, isEvents ? 3 * HEARTBEAT_MS : head.idleMs)
      .then((complete) => {
        // Readers of events go on behind the last one that they saw, also when the stream ends without its last event.
        if (complete || isEvents) response.end();
        else response.destroy();
      })
      .catch((error: unknown) => {
        // Ended here, on purpose.
        const { aborted, reason } = stop.signal;
        if (isEvents && aborted && !(reason instanceof Late)) return void response.end();
        if (!response.destroyed) this.#log.warn({ err: error }, "a reply of another node was cut short");
        response.destroy();
      })
      .finally(() => this.#closed(stop));
    this.#opened(stop, relaying, stays);
  }

  #opened(stop: AbortController, over: Promise<void>, stays: (() => boolean) | null): void {
    this.#open.set(stop, over);
    if (stays === null) return;
    this.#watched.set(stop, stays);
    this.#callOff ??= this.#clock.after(STAY_MS, () => this.#checkReaders());
  }

  #closed(stop: AbortController): void {
    this.#open.delete(stop);
    this.#watched.delete(stop);
    if (this.#watched.size > 0) return;
    this.#callOff?.();
    this.#callOff = null;
  }

  #checkReaders(): void {
    for (const [stop, stays] of this.#watched) if (!stays()) stop.abort();
    this.#callOff = this.#clock.after(STAY_MS, () => this.#checkReaders());
  }

  /** Whether it came to its end. A peer that says nothing for too long is left, and so is a reader that takes nothing. */
  async #copy(
    response: ServerResponse,
    body: AsyncIterable<Buffer>,
    stop: AbortController,
    idleMs: number,
  ): Promise<boolean> {
    const late = (): void => stop.abort(new Late(`nothing came for ${idleMs} ms`));
    let callOff = this.#clock.after(idleMs, late);
    try {
      for await (const chunk of body) {
        callOff();
        callOff = this.#clock.after(idleMs, late);
        if (stop.signal.aborted) return false;
        if (!response.write(chunk) && !response.destroyed) await drained(response, stop.signal);
        if (stop.signal.aborted) return false;
        callOff();
        callOff = this.#clock.after(idleMs, late);
      }
      return !stop.signal.aborted;
    } finally {
      callOff();
    }
  }

  async #write(
    response: ServerResponse,
    events: AsyncIterable<ServerEvent>,
    signal: AbortSignal,
  ): Promise<void> {
    let calledOff = this.#clock.after(HEARTBEAT_MS, beat);
    const clock = this.#clock;
    const turn = new Turn(response);
    function beat(): void {
      // A reader that took nothing for a whole beat is gone or stuck, and would hold our memory.
      if (response.writableNeedDrain) return void response.destroy();
      response.write(HEARTBEAT);
      calledOff = clock.after(HEARTBEAT_MS, beat);
    }
    try {
      for await (const event of events) {
        if (signal.aborted) break;
        turn.gather();
        if (!response.write(format(event)) && !response.destroyed) await drained(response, signal);
      }
    } finally {
      calledOff();
      turn.over(); // Node would send the end before what it has gathered
      response.end();
    }
  }
}

class Late extends Error {}

/** What is written within one turn of the event loop goes out as one piece: thousands of events in a second are few of these. */
class Turn {
  readonly #response: ServerResponse;
  #open = false;

  constructor(response: ServerResponse) {
    this.#response = response;
  }

  gather(): void {
    if (this.#open) return;
    this.#open = true;
    this.#response.cork();
    setImmediate(() => this.over());
  }

  over(): void {
    if (!this.#open) return;
    this.#open = false;
    this.#response.uncork();
  }
}

async function drained(response: ServerResponse, signal: AbortSignal): Promise<void> {
  try {
    await once(response, "drain", { signal });
  } catch {
    // Aborted: the reader left or we stop, and the loop looks at the signal.
  }
}
