/** Answers the calls of a peer on a shared connection. A reply that is too large for it is kept until it is fetched. */

import type { NodeName } from "../../core/ids.ts";
import type { Platform } from "../../platform/platform.ts";
import type { PeerHandler, PeerReply } from "../transport.ts";
import { leftWith, wholeBody } from "../stream-body.ts";
import { received, readRequest, replyHeaders, type RequestContent } from "./message-content.ts";
import { isLarge, KIND, MeshFault, type Message } from "./frame.ts";
import type { FrameSocket, Session } from "./frame-socket.ts";
import type { ConnectionLimits } from "./mesh-connection.ts";
import { MESH_PATH } from "./handshake.ts";

interface RequestServerOptions {
  readonly session: Session;
  readonly frames: FrameSocket;
  readonly handler: PeerHandler;
  readonly parked: ParkedReplies;
  readonly limits: ConnectionLimits;
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
    const { frames, limits } = this.#o;
    const { callsMax } = limits;
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
    const { session, frames, handler, parked, limits } = this.#o;
    const { name: peer } = session.peer;
    try {
      const reply = await handler(received(content, peer, content.body!, left.signal));
      const { status, headers } = reply;
      const body = reply.stream
        ? await wholeBody(leftWith(left.signal, reply.stream), limits.bodyBytesMax)
        : (reply.body ?? "");
      if (this.#calls.get(id) !== left) return;
      if (!isLarge(body)) frames.write().reply(id, status, replyHeaders(headers), body);
      else frames.write().text(KIND.parked, id, parked.put(peer, { status, headers, body }));
    } catch (error) {
      if (this.#calls.get(id) !== left) return;
      session.log.warn({ err: error, peer, path: content.path }, "a call of a peer failed");
      frames.write().text(KIND.broken, id, "the peer failed to answer");
    }
    this.#calls.delete(id);
    this.#o.onDone();
  }
}

/** A caller fetches its reply at once; one that does not has gone. */
const KEPT_MS = 10_000;
const TICKET_PATH = `${MESH_PATH}/reply/`;

interface Parked {
  readonly peer: NodeName;
  readonly reply: PeerReply;
  readonly cancel: () => void;
}

/** Replies that are too large for a shared connection, until the caller fetches them over a connection of its own. */
export class ParkedReplies {
  readonly #platform: Pick<Platform, "clock" | "random">;
  readonly #replies = new Map<string, Parked>();

  constructor(platform: Pick<Platform, "clock" | "random">) {
    this.#platform = platform;
  }

  put(peer: NodeName, reply: PeerReply): string {
    const { clock, random } = this.#platform;
    const ticket = random.uuid();
    const cancel = clock.after(KEPT_MS, () => this.#replies.delete(ticket));
    this.#replies.set(ticket, { peer, reply, cancel });
    return ticket;
  }

  /** The reply that a peer fetches by this path, once; null for every other path. */
  take(peer: NodeName, path: string): PeerReply | null {
    if (!path.startsWith(TICKET_PATH)) return null;
    const ticket = path.slice(TICKET_PATH.length);
    const parked = this.#replies.get(ticket);
    if (parked?.peer !== peer) throw new Error(`no reply is kept for ${peer} under this ticket`);
    this.#replies.delete(ticket);
    parked.cancel();
    return parked.reply;
  }

  clear(): void {
    for (const { cancel } of this.#replies.values()) cancel();
    this.#replies.clear();
  }
}

export function ticketPath(ticket: string): string {
  return TICKET_PATH + ticket;
}
