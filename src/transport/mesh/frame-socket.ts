/**
 * Sends and receives sealed frames on one WebSocket, and reports once when it is over. All messages that are written in
 * one turn of the event loop leave in one frame. A side that has received nothing for a while sends a ping and closes
 * the connection when no sealed frame answers, because a machine that vanished does not close it.
 */

import type { WebSocket } from "ws";
import type { NodeIdentity } from "../../core/node.ts";
import type { Platform } from "../../platform/platform.ts";
import { FRAME_FULL_BYTES, FrameReader, FrameWriter, KIND, MeshFault, type Message } from "./frame.ts";
import type { SessionKeys } from "./handshake.ts";

/** A connection after its handshake. */
export interface Session extends Pick<Platform, "clock" | "log"> {
  readonly socket: WebSocket;
  readonly peer: NodeIdentity;
  readonly dialled: boolean;
  readonly keys: SessionKeys;
  /** After so long without a frame a ping is sent, */
  readonly pingMs: number;
  /** and after so long the peer is considered gone. Below a few pings a busy machine looks dead. */
  readonly silentMs: number;
  /** A shared connection writes much all the time; thousands of others hardly anything. */
  readonly slabBytes: number;
}

interface FrameSocketEvents {
  /** A throw closes the connection. */
  readonly onMessage: (message: Message) => void;
  readonly onOver: (reason: string) => void;
  readonly onProven?: () => void;
}

/** Unsent bytes above which no new call is accepted: the peer does not read. */
const CONGESTED_BYTES = 8 * 1024 * 1024;
const SEND = { binary: true, compress: false } as const;

export class FrameSocket {
  readonly #session: Session;
  readonly #events: FrameSocketEvents;
  readonly #writer: FrameWriter;
  readonly #reader: FrameReader;
  #open = true;
  #proven: boolean;
  /** While this side does not read, silence means nothing. */
  #paused = false;
  #scheduled = false;
  #heard = false;
  #silentSince: number;
  #lookDue = 0;
  #callOffLook = (): void => {};

  constructor(session: Session, events: FrameSocketEvents) {
    const { socket, dialled, keys } = session;
    this.#session = session;
    this.#events = events;
    this.#writer = new FrameWriter(keys.send, session.slabBytes);
    this.#reader = new FrameReader(keys.receive);
    // The server's proof came with the upgrade; that of the dialler is its first frame.
    this.#proven = dialled;
    this.#silentSince = session.clock.monotonic();
    this.#lookLater();
    socket.on("message", (data, isBinary) => this.#onFrame(data as Buffer, isBinary));
    socket.on("error", (error) => this.destroy(error.message));
    socket.on("close", (code) =>
      this.destroy(code === 1001 ? "the peer stopped" : `the connection was closed (${code})`),
    );
    if (socket.readyState !== socket.OPEN)
      queueMicrotask(() => this.destroy("the connection was closed at once"));
  }

  get open(): boolean {
    return this.#open;
  }

  get proven(): boolean {
    return this.#proven;
  }

  /** The number of the frame that is being filled; those below have been given to the socket. */
  get frame(): number {
    return this.#writer.frame;
  }

  get congested(): boolean {
    return this.#session.socket.bufferedAmount > CONGESTED_BYTES;
  }

  /** What is written leaves by the end of this turn. */
  write(): FrameWriter {
    if (this.#writer.bytes >= FRAME_FULL_BYTES) this.flush();
    if (!this.#scheduled) {
      this.#scheduled = true;
      setImmediate(this.#onTurn);
    }
    return this.#writer;
  }

  flush(sent?: () => void): void {
    const frame = this.#open ? this.#writer.take() : null;
    if (frame) this.#session.socket.send(frame, SEND, sent);
    else sent?.();
  }

  /** Sends what is written; resolves, in a later turn of the event loop, when the operating system has taken it. */
  drain(): Promise<void> {
    return new Promise((resolve) => this.flush(() => setImmediate(resolve)));
  }

  pause(): void {
    if (!this.#open) return;
    this.#paused = true;
    this.#session.socket.pause();
  }

  resume(): void {
    if (!this.#open) return;
    this.#paused = false;
    this.#session.socket.resume();
  }

  /** Sends what is written and closes the connection, by force after `graceMs`. */
  async close(reason: string, code: 1000 | 1001, graceMs: number): Promise<void> {
    if (!this.#open) return;
    const { socket, clock } = this.#session;
    const closed = Promise.withResolvers<void>();
    const cancel = clock.after(graceMs, () => socket.terminate());
    socket.once("close", () => {
      cancel();
      closed.resolve();
    });
    this.flush();
    this.resume();
    this.#end(reason);
    socket.close(code);
    await closed.promise;
  }

  destroy(reason: string): void {
    this.#end(reason);
    this.#session.socket.terminate();
  }

  readonly #onTurn = (): void => {
    this.#scheduled = false;
    this.flush();
  };

  #onFrame(data: Buffer, isBinary: boolean): void {
    if (!this.#open) return;
    try {
      if (!isBinary) throw new MeshFault("a frame is text");
      for (const message of this.#reader.messages(data)) {
        this.#heard = true;
        if (!this.#proven) {
          this.#proven = true;
          this.#events.onProven?.();
        }
        if (message.kind === KIND.ping) this.write().text(KIND.pong, 0);
        else if (message.kind !== KIND.pong) this.#events.onMessage(message);
        if (!this.#open) return;
      }
    } catch (error) {
      const { log, peer } = this.#session;
      log.warn({ err: error, peer: peer.name }, "closed a connection of the mesh");
      this.destroy(error instanceof MeshFault ? error.message : "a frame could not be read");
    }
  }

  #end(reason: string): void {
    if (!this.#open) return;
    this.#open = false;
    this.#callOffLook();
    this.#events.onOver(reason);
  }

  #lookLater(): void {
    const { clock, pingMs } = this.#session;
    this.#lookDue = clock.monotonic() + pingMs;
    this.#callOffLook = clock.after(pingMs, () => this.#look());
  }

  #look(): void {
    const { clock, pingMs, silentMs } = this.#session;
    const now = clock.monotonic();
    // If this process did not run, what the peer sent meanwhile has not been read yet.
    const blind = now - this.#lookDue > pingMs || this.#paused;
    if (this.#heard || blind) this.#silentSince = now;
    const forMs = now - this.#silentSince;
    if (forMs >= silentMs) return this.destroy(`nothing was heard for ${Math.round(forMs)} ms`);
    if (!this.#heard && this.#proven) this.write().text(KIND.ping, 0);
    this.#heard = false;
    this.#lookLater();
  }
}
