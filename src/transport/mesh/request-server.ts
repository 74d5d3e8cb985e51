/** Serves the calls of the peer on a connection: passes them to the handler and sends back its replies. */

import type { NodeName } from "../../core/ids.ts";
import type { Log } from "../../platform/log.ts";
import type { PeerHandler, PeerReply } from "../transport.ts";
import { readData, readNumber, readRequest, writeHeaders } from "./message-content.ts";
import { HEADERS_LENGTH_MAX, KIND, MeshFault, PART_BYTES } from "./frame.ts";
import type { Message } from "./frame.ts";
import { IncomingCall } from "./incoming-call.ts";
import type { Outbox } from "./outbox.ts";

export interface RequestServerOptions {
  readonly peer: NodeName;
  readonly outbox: Outbox;
  readonly handler: PeerHandler;
  readonly log: Log;
  readonly callsMax: number;
  readonly bodyBytesMax: number;
  /** One of them is over. */
  readonly onDone: () => void;
}

export class RequestServer {
  readonly #o: RequestServerOptions;
  readonly #calls = new Map<number, IncomingCall>();

  constructor(options: RequestServerOptions) {
    this.#o = options;
  }

  get size(): number {
    return this.#calls.size;
  }

  begin(message: Message): void {
    const { id } = message;
    const { outbox, callsMax, bodyBytesMax } = this.#o;
    const content = readRequest(message);
    if (this.#calls.has(id)) throw new MeshFault(`call ${id} came twice`);
    if (this.#calls.size >= callsMax) {
      return outbox.write().text(KIND.refuse, id, `${callsMax} calls from this peer are under way`);
    }
    if (content.deadlineMs > 0) content.headers["x-baton-deadline-ms"] ??= String(content.deadlineMs);
    const grant = (bytes: number): void => outbox.write().number(KIND.requestCredit, id, bytes);
    const call = new IncomingCall(id, content, grant, bodyBytesMax);
    this.#calls.set(id, call);
    if (content.body !== null) this.#handle(call, content.body);
  }

  /** More of a request's body. */
  more(message: Message): void {
    const call = this.#calls.get(message.id);
    if (!call) return;
    const { chunk, ended } = readData(message);
    const body = call.part(chunk, ended);
    if (typeof body === "string") this.#handle(call, body);
    else if (body !== null) {
      const { outbox } = this.#o;
      outbox.write().text(KIND.refuse, call.id, `the request is larger than ${body.tooLarge} bytes`);
      this.leave(call.id);
    }
  }

  credit(message: Message): void {
    this.#calls.get(message.id)?.flow.grant(readNumber(message));
  }

  /** The caller does not wait any more. */
  leave(id: number): void {
    const call = this.#calls.get(id);
    if (!call) return;
    this.#calls.delete(id);
    call.leave();
    this.#o.onDone();
  }

  leaveAll(): void {
    const calls = [...this.#calls.values()];
    this.#calls.clear();
    for (const call of calls) call.leave();
  }

  #handle(call: IncomingCall, body: string): void {
    const broken = (error: unknown): void => this.#break(call, error);
    // One that throws before its first await is treated like one that rejects.
    try {
      const { handler, peer } = this.#o;
      handler(call.received(peer, body)).then((reply) => this.#answer(call, reply), broken);
    } catch (error) {
      broken(error);
    }
  }

  #answer(call: IncomingCall, reply: PeerReply): void {
    if (this.#calls.get(call.id) !== call) {
      reply.stream?.[Symbol.asyncIterator]()
        .return?.()
        .catch(() => {});
      return;
    }
    const headers = writeHeaders(reply.headers);
    if (headers === null || headers.length > HEADERS_LENGTH_MAX) {
      return this.#break(call, new Error("the headers of a reply are too long, or contain a line break"));
    }
    const { outbox } = this.#o;
    const { status, body = "" } = reply;
    if (!reply.stream && body.length <= PART_BYTES) {
      outbox.write().reply(call.id, status, headers, body);
      return this.#forget(call);
    }
    outbox.write().reply(call.id, status, headers, null);
    call
      .pour(reply.stream ?? whole(body), PART_BYTES, (chunk, ended) =>
        outbox.part(KIND.replyData, call.id, chunk, ended),
      )
      .then(
        () => this.#forget(call),
        (error: unknown) => this.#break(call, error),
      );
  }

  #break(call: IncomingCall, error: unknown): void {
    if (this.#calls.get(call.id) !== call) return;
    const { log, peer, outbox } = this.#o;
    log.warn({ err: error, peer, path: call.request.path }, "a call of a peer broke off");
    outbox.write().text(KIND.broken, call.id, "the peer failed over it");
    this.#forget(call);
  }

  #forget(call: IncomingCall): void {
    if (this.#calls.get(call.id) === call) this.#calls.delete(call.id);
    this.#o.onDone();
  }
}

async function* whole(body: string): AsyncGenerator<Buffer> {
  yield Buffer.from(body);
}
