/**
 * The body of a streamed reply, between the connection that fills it and its single reader.
 *
 * The connection is asked to `pause` when much is unread and to `resume` when little is left; `leave` means that the
 * reader has stopped.
 */

interface Filler {
  pause(): void;
  resume(): void;
  leave(reason: string): void;
}

/** Smaller, and every chunk of a quick reply costs a pause; larger, and a hundred slow readers cost memory. */
const HIGH_BYTES = 256 * 1024;
const LOW_BYTES = 64 * 1024;

export class StreamBody implements AsyncIterable<Buffer> {
  readonly #filler: Filler;
  #chunks: Buffer[] = [];
  #bytes = 0;
  #paused = false;
  #end: "ended" | Error | null = null;
  #left = false;
  #taken = false;
  #waiting: (() => void) | null = null;

  constructor(filler: Filler) {
    this.#filler = filler;
  }

  push(chunk: Buffer): void {
    if (this.#end || this.#left || chunk.length === 0) return;
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    if (this.#bytes > HIGH_BYTES && !this.#paused) {
      this.#paused = true;
      this.#filler.pause();
    }
    this.#wake();
  }

  end(): void {
    this.#end ??= "ended";
    this.#wake();
  }

  /** What has come before the cut is still read; then it rejects. */
  fail(reason: string): void {
    this.#end ??= new Error(reason);
    this.#wake();
  }

  /** The reader's side says that it is enough. */
  callOff(reason: string): void {
    if (this.#end || this.#left) return;
    this.#chunks = [];
    this.fail(reason);
    this.#filler.leave(reason);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer, void, void> {
    if (this.#taken) throw new Error("the body of a reply can be read only once");
    this.#taken = true;
    try {
      for (;;) {
        const chunk = this.#chunks.shift();
        if (chunk) {
          this.#bytes -= chunk.length;
          yield chunk;
          this.#relieve();
        } else if (this.#end === "ended") return;
        else if (this.#end) throw this.#end;
        else await new Promise<void>((resolve) => (this.#waiting = resolve));
      }
    } finally {
      this.#left = true;
      this.#chunks = [];
      if (!this.#end) this.#filler.leave("its reader left");
    }
  }

  #relieve(): void {
    if (!this.#paused || this.#bytes > LOW_BYTES || this.#end) return;
    this.#paused = false;
    this.#filler.resume();
  }

  #wake(): void {
    this.#waiting?.();
    this.#waiting = null;
  }
}
