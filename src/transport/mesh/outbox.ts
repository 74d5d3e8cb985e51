/** The output of a connection: everything written in one turn of the event loop goes into one frame. */

import type { KeyObject } from "node:crypto";
import type { WebSocket } from "ws";
import { FRAME_FULL_BYTES, FrameWriter, KIND } from "./frame.ts";

/** Unsent bytes above which no more parts of bodies are written: small calls must not queue behind them for long. */
const ROOMY_BYTES = 256 * 1024;
/** And above which nothing new is begun: the peer does not read. */
const CONGESTED_BYTES = 8 * 1024 * 1024;

const SEND = { binary: true, compress: false } as const;

export class Outbox {
  readonly #socket: WebSocket;
  readonly #writer: FrameWriter;
  #roomWanted: (() => void)[] = [];
  #scheduled = false;
  #open = true;

  constructor(socket: WebSocket, key: KeyObject) {
    this.#socket = socket;
    this.#writer = new FrameWriter(key);
  }

  /** The number of the frame that is being filled; those below have been given to the socket. */
  get frame(): number {
    return this.#writer.frame;
  }

  get congested(): boolean {
    return this.#socket.bufferedAmount > CONGESTED_BYTES;
  }

  /** To write a message with; it leaves by the end of this turn. */
  write(): FrameWriter {
    if (this.#writer.bytes >= FRAME_FULL_BYTES) this.flush();
    if (!this.#scheduled) {
      this.#scheduled = true;
      setImmediate(this.#onTurn);
    }
    return this.#writer;
  }

  readonly #onTurn = (): void => {
    this.#scheduled = false;
    this.flush();
  };

  flush(): void {
    if (!this.#open) return;
    const frame = this.#writer.take();
    if (frame) this.#socket.send(frame, SEND, this.#roomWanted.length > 0 ? this.#makeRoom : undefined);
  }

  /** Waits while much is unsent. */
  async part(kind: number, id: number, chunk: Buffer, ended: boolean): Promise<void> {
    while (this.#open && this.#socket.bufferedAmount + this.#writer.bytes > ROOMY_BYTES) {
      const room = Promise.withResolvers<void>();
      this.#roomWanted.push(room.resolve);
      // A frame reports when it has left, and there may be none on its way.
      if (this.#writer.bytes === 0) this.write().text(KIND.pong, 0);
      else this.write();
      await room.promise;
    }
    if (this.#open) this.write().data(kind, id, chunk, ended);
  }

  /** From now on nothing leaves, and nobody waits. */
  close(): void {
    this.#open = false;
    this.#makeRoom();
  }

  readonly #makeRoom = (): void => {
    const wanted = this.#roomWanted;
    this.#roomWanted = [];
    for (const proceed of wanted) proceed();
  };
}
