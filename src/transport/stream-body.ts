/** The bodies of streamed replies. */

import { Readable } from "node:stream";

interface Filler {
  pause(): void;
  resume(): void;
  leave(reason: string): void;
}

/** All of a body. Rejects for one that is too large for memory. */
export async function wholeBody(chunks: AsyncIterable<Buffer>, bytesMax: number): Promise<string> {
  const kept: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of chunks) {
    bytes += chunk.length;
    if (bytes > bytesMax) throw new Error(`the reply is larger than ${bytesMax} bytes`);
    kept.push(chunk);
  }
  return Buffer.concat(kept).toString("utf8");
}

/** A source that is left with the signal, also while it waits for something that does not happen. */
export function leftWith(signal: AbortSignal, stream: AsyncIterable<Buffer>): AsyncIterable<Buffer> {
  const source = stream[Symbol.asyncIterator]();
  const leave = (): void => void source.return?.().catch(() => {});
  signal.addEventListener("abort", leave, { once: true });
  if (signal.aborted) leave();
  return { [Symbol.asyncIterator]: () => source };
}

/** Smaller, and every chunk of a quick reply costs a pause; larger, and a hundred slow readers cost memory. */
const UNREAD_BYTES_MAX = 256 * 1024;

/**
 * A body between the connection that fills it and its single reader. The connection is asked to `pause` when much is
 * unread and to `resume` when it was read; `leave` means that the reader has stopped.
 */
export class StreamBody implements AsyncIterable<Buffer> {
  readonly #filler: Filler;
  readonly #unread: Readable;
  #paused = false;
  #over = false;
  #failure: Error | null = null;
  #taken = false;

  constructor(filler: Filler) {
    this.#filler = filler;
    this.#unread = new Readable({ highWaterMark: UNREAD_BYTES_MAX, read: () => this.#resume() });
    // Its reader gets the error; without a listener it would end the process.
    this.#unread.on("error", () => {});
  }

  push(chunk: Buffer): void {
    if (this.#over || this.#unread.push(chunk) || this.#paused || chunk.length === 0) return;
    this.#paused = true;
    this.#filler.pause();
  }

  end(): void {
    if (this.#over) return;
    this.#over = true;
    this.#unread.push(null);
  }

  /** What has come before the cut is still read; then it rejects. */
  fail(reason: string): void {
    if (!this.#over) this.#failure = new Error(reason);
    this.end();
  }

  callOff(reason: string): void {
    if (this.#over) return;
    this.#over = true;
    this.#unread.destroy(new Error(reason));
    this.#filler.leave(reason);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer, void, void> {
    if (this.#taken) throw new Error("the body of a reply can be read only once");
    this.#taken = true;
    try {
      yield* this.#unread;
      if (this.#failure) throw this.#failure;
    } finally {
      const left = !this.#over;
      this.#over = true;
      if (left) this.#filler.leave("its reader left");
    }
  }

  #resume(): void {
    if (!this.#paused || this.#over) return;
    this.#paused = false;
    this.#filler.resume();
  }
}
