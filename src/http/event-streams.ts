/**
 * Replies that are written piece by piece: server-sent events, and bodies of other nodes. Each goes as fast as its reader
 * takes it, and ends when the reader leaves, takes nothing, or may not stay, and when the node stops.
 */

import type { OutgoingHttpHeaders } from "node:http";
import { pipeline } from "node:stream/promises";
import type { FastifyReply } from "fastify";
import { EVENT_HEADERS, eventBytes, HEARTBEAT_MS } from "../api/schema/event-bytes.ts";
import type { EventReply } from "../api/operation.ts";
import type { Clock } from "../platform/clock.ts";
import type { Platform } from "../platform/platform.ts";

/** How often it is asked whether readers may stay. With the two seconds in which nodes hear of a revocation it is below five. */
const STAY_MS = 2_000;

interface RelayHead {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Between two parts of a body. Shorter than it takes the peer to read a page from its disk, and good replies are cut. */
  readonly idleMs: number;
}

export type EventStreams = ReturnType<typeof eventStreams>;
/** Null where nothing was shown that could be revoked. */
type Stays = (() => boolean) | null;

export function eventStreams({ clock, log }: Pick<Platform, "clock" | "log">) {
  const open = new Map<AbortController, Promise<void>>();
  const watched = new Map<AbortController, () => boolean>();
  let callOff: (() => void) | null = null;
  let ending = false;

  function pipe(
    reply: FastifyReply,
    head: Pick<RelayHead, "status" | "headers">,
    body: AsyncIterable<Buffer>,
    stop: AbortController,
    stays: Stays,
    onBroken: (error: unknown) => void,
  ): void {
    const response = reply.raw;
    const { signal } = stop;
    const events = isEvents(head.headers);
    const headers = { ...reply.getHeaders(), ...head.headers } as OutgoingHttpHeaders;
    // A finished stream takes its socket along, so that a drain has nothing left to wait for.
    if (events) Object.assign(headers, { connection: "close", "x-accel-buffering": "no" });
    reply.hijack();
    response.once("close", () => stop.abort());
    // A reader that has taken nothing would hold up the end.
    signal.addEventListener("abort", () => response.writableNeedDrain && response.destroy(), { once: true });
    response.writeHead(head.status, headers);
    if (events) response.flushHeaders();
    const piping = pipeline(body, response, { end: false })
      .then(() => {
        // Readers of events go on behind the last one that they saw, also when the stream ends without its last event.
        if (events || !signal.aborted) response.end();
        else response.destroy();
      })
      .catch((error: unknown) => {
        if (events && signal.aborted && !(signal.reason instanceof Late)) return void response.end();
        // The headers are gone: a cut connection is all we can still say.
        if (!response.destroyed) onBroken(error);
        response.destroy();
      })
      .finally(() => closed(stop));
    open.set(stop, piping);
    if (stays !== null) {
      watched.set(stop, stays);
      callOff ??= clock.after(STAY_MS, checkReaders);
    }
    if (ending) stop.abort();
  }

  function closed(stop: AbortController): void {
    open.delete(stop);
    watched.delete(stop);
    if (watched.size > 0) return;
    callOff?.();
    callOff = null;
  }

  function checkReaders(): void {
    for (const [stop, stays] of watched) if (!stays()) stop.abort();
    callOff = clock.after(STAY_MS, checkReaders);
  }

  return {
    get size(): number {
      return open.size;
    },

    /** Ends when its reader may not stay any longer; it comes back and gets the reason. */
    send(reply: FastifyReply, events: EventReply["events"], stays: Stays): void {
      const stop = new AbortController();
      const head = { status: 200, headers: EVENT_HEADERS };
      pipe(reply, head, eventBytes(events, clock, stop), stop, stays, (error) =>
        log.error({ error }, "an event stream broke"),
      );
    },

    /** Passes a body on. One that is cut short cuts the connection: what was sent so far must not be taken for the whole. */
    relay(
      reply: FastifyReply,
      head: RelayHead,
      body: AsyncIterable<Buffer>,
      stop: AbortController,
      stays: Stays,
    ): void {
      const idleMs = isEvents(head.headers) ? 3 * HEARTBEAT_MS : head.idleMs;
      pipe(reply, head, punctual(body, clock, idleMs, stop), stop, stays, (error) =>
        log.warn({ err: error }, "a reply of another node was cut short"),
      );
    },

    /** Ends all of them without their `end` event: readers go on elsewhere behind the last id that they saw. */
    async endAll(): Promise<void> {
      ending = true;
      for (const stop of open.keys()) stop.abort();
      await Promise.all(open.values());
    },
  };
}

class Late extends Error {}

/** A peer that says nothing for too long is left, and so is a reader that takes nothing. */
async function* punctual(
  body: AsyncIterable<Buffer>,
  clock: Clock,
  idleMs: number,
  stop: AbortController,
): AsyncGenerator<Buffer> {
  const late = (): void => stop.abort(new Late(`nothing came for ${idleMs} ms`));
  let callOff = clock.after(idleMs, late);
  const restart = (): void => {
    callOff();
    callOff = clock.after(idleMs, late);
  };
  try {
    for await (const chunk of body) {
      restart();
      if (stop.signal.aborted) return;
      yield chunk;
      restart();
    }
  } finally {
    callOff();
  }
}

function isEvents(headers: Readonly<Record<string, string>>): boolean {
  return headers["content-type"]?.startsWith("text/event-stream") ?? false;
}
