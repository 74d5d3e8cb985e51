/** A call from a peer, from its first message to the last part of our reply. */

import type { PeerReply, ReceivedRequest } from "../transport.ts";
import type { RequestContent } from "./message-content.ts";
import { Credit, Flow } from "./flow-control.ts";

export class IncomingCall {
  readonly id: number;
  readonly request: RequestContent;
  /** For the parts of our reply. */
  readonly flow = new Flow();
  readonly #gone = new AbortController();
  readonly #credit: Credit;
  readonly #bytesMax: number;
  #parts: Buffer[] = [];
  #bytes = 0;
  #source: AsyncIterator<Buffer> | null = null;

  constructor(id: number, request: RequestContent, grant: (bytes: number) => void, bytesMax: number) {
    this.id = id;
    this.request = request;
    this.#credit = new Credit(grant);
    this.#bytesMax = bytesMax;
  }

  /** The whole body when this was its last part; `too large` when there is more than fits. */
  part(chunk: Buffer, ended: boolean): string | null | { readonly tooLarge: number } {
    this.#bytes += chunk.length;
    if (this.#bytes > this.#bytesMax) return { tooLarge: this.#bytesMax };
    this.#parts.push(chunk);
    if (!ended) {
      this.#credit.read(chunk.length);
      return null;
    }
    const body = Buffer.concat(this.#parts).toString("utf8");
    this.#parts = [];
    return body;
  }

  received(from: string, body: string): ReceivedRequest {
    const { method, path, headers } = this.request;
    return { from, method, path, headers, body, signal: this.#gone.signal };
  }

  /** Nobody waits for the reply any more: whoever makes it is told, also one that hangs in the middle of a stream. */
  leave(): void {
    this.#parts = [];
    this.flow.close();
    this.#gone.abort();
    this.#source?.return?.().catch(() => {});
  }

  /** Sends a stream as fast as the caller takes it. False when it left before the end. */
  async pour(
    stream: NonNullable<PeerReply["stream"]>,
    partBytes: number,
    send: (chunk: Buffer, ended: boolean) => Promise<void>,
  ): Promise<boolean> {
    const source = stream[Symbol.asyncIterator]();
    this.#source = source;
    for (;;) {
      const { done, value } = await source.next();
      if (this.flow.closed) break;
      if (done) {
        await send(EMPTY, true);
        return true;
      }
      if (!(await sendParts(value, this.flow, partBytes, send))) break;
    }
    source.return?.().catch(() => {});
    return false;
  }
}

export const EMPTY = Buffer.alloc(0);

/** False when the flow was closed before the end. */
export async function sendParts(
  body: Buffer,
  flow: Flow,
  partBytes: number,
  send: (chunk: Buffer, ended: boolean) => Promise<void>,
): Promise<boolean> {
  for (let at = 0; at < body.length;) {
    const bytes = await flow.allow(Math.min(partBytes, body.length - at));
    if (bytes === 0) return false;
    await send(body.subarray(at, at + bytes), false);
    if (flow.closed) return false;
    at += bytes;
  }
  return true;
}
