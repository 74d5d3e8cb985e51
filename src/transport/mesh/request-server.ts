/** Answers the calls of a peer on a shared connection: passes them to the handler and sends back its replies. */

import type { NodeName } from "../../core/ids.ts";
import type { Log } from "../../platform/log.ts";
import type { PeerHandler, PeerReply } from "../transport.ts";
import { received, readRequest, replyHeaders } from "./message-content.ts";
import type { RequestContent } from "./message-content.ts";
import { isLarge, KIND, MeshFault } from "./frame.ts";
import type { Message } from "./frame.ts";
import type { FrameSocket } from "./frame-socket.ts";
import type { ParkedReplies } from "./parked-replies.ts";

export interface RequestServerOptions {
  readonly peer: NodeName;
  readonly frames: FrameSocket;
  readonly handler: PeerHandler;
  readonly parked: ParkedReplies;
  readonly log: Log;
  readonly callsMax: number;
  readonly bodyBytesMax: number;
  /** A call is over. */
  readonly onDone: () => void;
}

export class RequestServer {
  readonly #o: RequestServerOptions;
  /** By the number of the call; aborted when the caller does not wait any more. */
  readonly #calls = new Map<number, AbortController>();

  constructor(options: RequestServerOptions) {
    this.#o = options;
  }

  get size(): number {
    return this.#calls.size;
  }

  begin(message: Message): void {
    const { id } = message;
    const { frames, callsMax } = this.#o;
    const content = readRequest(message);
    if (this.#calls.has(id)) throw new MeshFault(`call ${id} came twice`);
    if (content.body === null) throw new MeshFault(`call ${id} has a body in parts`);
    if (this.#calls.size >= callsMax) {
      return frames.write().text(KIND.refuse, id, `${callsMax} calls from this peer are under way`);
    }
    const left = new AbortController();
    this.#calls.set(id, left);
    void this.#serve(id, content, left);
  }

  /** The caller does not wait any more. */
  leave(id: number): void {
    const left = this.#calls.get(id);
    if (!left) return;
    this.#calls.delete(id);
    left.abort("the caller has left");
    this.#o.onDone();
  }

  leaveAll(): void {
    for (const left of this.#calls.values()) left.abort("the caller has left");
    this.#calls.clear();
  }

  async #serve(id: number, content: RequestContent, left: AbortController): Promise<void> {
    const { handler, peer, frames, parked, log } = this.#o;
    try {
      const reply = await handler(received(content, peer, content.body!, left.signal));
      const { status, headers } = reply;
      const body = reply.stream ? await this.#whole(reply.stream, left.signal) : (reply.body ?? "");
      if (this.#calls.get(id) !== left) return;
      if (!isLarge(body)) frames.write().reply(id, status, replyHeaders(headers), body);
      else frames.write().text(KIND.parked, id, parked.put(peer, { status, headers, body }));
    } catch (error) {
      if (this.#calls.get(id) !== left) return;
      log.warn({ err: error, peer, path: content.path }, "a call of a peer failed");
      frames.write().text(KIND.broken, id, "the peer failed to answer");
    }
    this.#calls.delete(id);
    this.#o.onDone();
  }

  /** A stream that answers a call for a whole reply. */
  async #whole(stream: NonNullable<PeerReply["stream"]>, left: AbortSignal): Promise<string> {
    const source = stream[Symbol.asyncIterator]();
    const leave = (): void => void source.return?.().catch(() => {});
    if (left.aborted) leave();
    left.addEventListener("abort", leave, { once: true });
    const chunks: Buffer[] = [];
    let bytes = 0;
    for (let next = await source.next(); !next.done && !left.aborted; next = await source.next()) {
      bytes += next.value.length;
      if (bytes > this.#o.bodyBytesMax) {
        leave();
        throw new Error(`the reply is larger than ${this.#o.bodyBytesMax} bytes`);
      }
      chunks.push(next.value);
    }
    return Buffer.concat(chunks).toString("utf8");
  }
}
