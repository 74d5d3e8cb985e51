/**
 * A frame contains the output of one turn of the event loop: a seal and any number of messages.
 *
 *   seal      16 bytes of HMAC-SHA256 over the rest, under the session's key for this direction
 *   counter    8 bytes, from 0 on: a frame that is repeated, left out or moved does not match
 *   messages   each: kind 1, call number 4, length 4, content
 *
 * Sealing frames instead of messages makes the mesh cheap: under load one seal serves fifty calls.
 */

import { createHmac, timingSafeEqual, type KeyObject } from "node:crypto";
import type { PeerRequest } from "../transport.ts";

export const KIND = {
  hello: 0,
  request: 1,
  reply: 2,
  /** A part of a body, on a connection for a single call. */
  data: 3,
  /** The reply is too large for this connection; it can be fetched with this ticket on one of its own. */
  parked: 4,
  /** The caller does not wait any more. */
  cancel: 5,
  /** The reply will not come, or not to its end. */
  broken: 6,
  /** The handler was not called. */
  refuse: 7,
  /** No more requests will come from this side. */
  bye: 8,
  ping: 9,
  pong: 10,
} as const;

export const METHODS: readonly PeerRequest["method"][] = ["GET", "POST", "PUT", "DELETE"];

const SEAL_BYTES = 16;
const PREFIX_BYTES = SEAL_BYTES + 8;
const MESSAGE_HEAD_BYTES = 9;
/** A larger request or reply gets a connection of its own, so that it delays no other call for long. */
const LARGE_BYTES = 256 * 1024;
/** Of a body on a connection of its own. */
export const PART_BYTES = 64 * 1024;
/** A frame is sent when it has so much; the last message may exceed it by its whole length. */
export const FRAME_FULL_BYTES = 64 * 1024;
/** In characters: with three bytes each, a request's head still fits into a frame. */
export const PATH_LENGTH_MAX = 16 * 1024;
export const HEADERS_LENGTH_MAX = 32 * 1024;
/** The largest frame that is accepted, whatever a length field says: a full frame and one more large message. */
export const FRAME_BYTES_MAX = 512 * 1024;

export class FrameWriter {
  readonly #key: KeyObject;
  readonly #slabBytes: number;
  #slab = Buffer.alloc(0);
  #start = 0;
  #at = 0;
  #counter = 0;

  /** Messages are written into slabs of this size, or of their own size if they are larger. */
  constructor(key: KeyObject, slabBytes: number) {
    this.#key = key;
    this.#slabBytes = slabBytes;
  }

  get frame(): number {
    return this.#counter;
  }

  get bytes(): number {
    return this.#at - this.#start;
  }

  request(
    id: number,
    method: PeerRequest["method"],
    path: string,
    headers: string,
    deadlineMs: number,
    body: string | null,
  ): void {
    const head = this.#open(KIND.request, id, 12 + 3 * (path.length + headers.length + (body?.length ?? 0)));
    let at = this.#at;
    const slab = this.#slab;
    slab[at++] = body === null ? 0 : 1;
    slab[at++] = METHODS.indexOf(method);
    at = slab.writeUInt32BE(Math.min(deadlineMs, 0xffff_ffff), at);
    at += 2;
    const pathBytes = slab.write(path, at + 4);
    slab.writeUInt16BE(pathBytes, at - 2);
    const headerBytes = headers === "" ? 0 : slab.write(headers, at + 4 + pathBytes);
    slab.writeUInt32BE(headerBytes, at);
    at += 4 + pathBytes + headerBytes;
    if (body) at += slab.write(body, at);
    this.#close(head, at);
  }

  reply(id: number, status: number, headers: string, body: string | null): void {
    const head = this.#open(KIND.reply, id, 7 + 3 * (headers.length + (body?.length ?? 0)));
    let at = this.#at;
    const slab = this.#slab;
    slab[at++] = body === null ? 0 : 1;
    at = slab.writeUInt16BE(status, at);
    const headerBytes = headers === "" ? 0 : slab.write(headers, at + 4);
    at = slab.writeUInt32BE(headerBytes, at) + headerBytes;
    if (body) at += slab.write(body, at);
    this.#close(head, at);
  }

  data(id: number, chunk: Buffer, ended: boolean): void {
    const head = this.#open(KIND.data, id, 1 + chunk.length);
    this.#slab[this.#at] = ended ? 1 : 0;
    chunk.copy(this.#slab, this.#at + 1);
    this.#close(head, this.#at + 1 + chunk.length);
  }

  text(kind: number, id: number, text = ""): void {
    const head = this.#open(kind, id, 3 * text.length);
    this.#close(head, this.#at + (text === "" ? 0 : this.#slab.write(text, this.#at)));
  }

  /** The sealed frame, or null when there is nothing to send. */
  take(): Buffer | null {
    if (this.#at === this.#start) return null;
    const frame = this.#slab.subarray(this.#start, this.#at);
    frame.writeUInt32BE(Math.floor(this.#counter / 2 ** 32), SEAL_BYTES);
    frame.writeUInt32BE(this.#counter % 2 ** 32, SEAL_BYTES + 4);
    sealOf(this.#key, frame).copy(frame, 0, 0, SEAL_BYTES);
    this.#counter++;
    this.#start = this.#at;
    return frame;
  }

  /** Room for a message of at most so many bytes; gives where its head is. */
  #open(kind: number, id: number, bytesMax: number): number {
    const begun = this.#at > this.#start;
    const needed = (begun ? 0 : PREFIX_BYTES) + MESSAGE_HEAD_BYTES + bytesMax;
    if (this.#at + needed > this.#slab.length) {
      // What was taken may still be on its way out of the old slab, so a new one is begun instead of the old one's start.
      const slab = Buffer.allocUnsafeSlow(Math.max(this.#slabBytes, this.bytes + needed));
      this.#slab.copy(slab, 0, this.#start, this.#at);
      this.#at = this.bytes;
      this.#start = 0;
      this.#slab = slab;
    }
    if (!begun) this.#at += PREFIX_BYTES;
    const head = this.#at;
    this.#slab[head] = kind;
    this.#slab.writeUInt32BE(id, head + 1);
    this.#at = head + MESSAGE_HEAD_BYTES;
    return head;
  }

  #close(head: number, end: number): void {
    this.#slab.writeUInt32BE(end - head - MESSAGE_HEAD_BYTES, head + 5);
    this.#at = end;
  }
}

export function isLarge(body: string): boolean {
  return body.length > LARGE_BYTES / 3 && Buffer.byteLength(body) > LARGE_BYTES;
}

/** The peer has violated the protocol: the connection is closed. */
export class MeshFault extends Error {}

export class FrameReader {
  readonly #key: KeyObject;
  #counter = 0;

  constructor(key: KeyObject) {
    this.#key = key;
  }

  /** Gives each message of a frame that is the next one and has not been touched. */
  *messages(frame: Buffer): Generator<Message, void, void> {
    if (frame.length < PREFIX_BYTES + MESSAGE_HEAD_BYTES) throw new MeshFault("a frame is too short");
    const counter = frame.readUInt32BE(SEAL_BYTES) * 2 ** 32 + frame.readUInt32BE(SEAL_BYTES + 4);
    if (!timingSafeEqual(frame.subarray(0, SEAL_BYTES), sealOf(this.#key, frame).subarray(0, SEAL_BYTES))) {
      throw new MeshFault("the seal of a frame does not fit");
    }
    if (counter !== this.#counter) {
      throw new MeshFault(`frame ${counter} came where ${this.#counter} was due`);
    }
    this.#counter++;
    for (let at = PREFIX_BYTES; at < frame.length;) {
      if (at + MESSAGE_HEAD_BYTES > frame.length) throw new MeshFault("a message is cut off");
      const begin = at + MESSAGE_HEAD_BYTES;
      const end = begin + frame.readUInt32BE(at + 5);
      if (end > frame.length) throw new MeshFault("a message is longer than its frame");
      yield { kind: frame[at]!, id: frame.readUInt32BE(at + 1), frame, begin, end };
      at = end;
    }
  }
}

export interface Message {
  readonly kind: number;
  readonly id: number;
  readonly frame: Buffer;
  readonly begin: number;
  readonly end: number;
}

function sealOf(key: KeyObject, frame: Buffer): Buffer {
  return createHmac("sha256", key).update(frame.subarray(SEAL_BYTES)).digest();
}
