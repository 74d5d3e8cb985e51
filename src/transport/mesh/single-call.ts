/**
 * One call on a connection of its own, for streams and large bodies. Both sides wait until the operating system has
 * taken a part before they send the next one, and stop reading while their reader is slow, so that TCP limits what is
 * in memory. The dialler sends the request, and closes the connection when it has the whole reply or does not want it.
 */

import { CALLED_OFF, late, refused, unknown } from "../call-outcome.ts";
import { leftWith, StreamBody } from "../stream-body.ts";
import type {
  Failure,
  PeerHandler,
  PeerReply,
  PeerRequest,
  StreamOptions,
  StreamOutcome,
} from "../transport.ts";
import { KIND, MeshFault, PART_BYTES, type Message } from "./frame.ts";
import { FrameSocket, type Session } from "./frame-socket.ts";
import {
  readData,
  readReply,
  readRequest,
  readText,
  received,
  replyHeaders,
  type RequestContent,
} from "./message-content.ts";

/** For the other side to close as well; then the socket is cut. */
const CLOSE_MS = 1_000;
const CALL = 1;

interface SingleRequest extends Omit<PeerRequest, "headers"> {
  /** As `requestHeaders` writes them. */
  readonly headers: string;
  readonly deadlineMs: number | null;
}

/** The side that calls. */
export class SingleCall {
  readonly outcome: Promise<StreamOutcome>;
  readonly #frames: FrameSocket;
  readonly #resolve: (outcome: StreamOutcome) => void;
  readonly #cancelDeadline: () => void;
  readonly #options: StreamOptions;
  #body: StreamBody | null = null;
  #over = false;

  constructor(session: Session, request: SingleRequest, options: StreamOptions, onOver: () => void) {
    const { promise, resolve } = Promise.withResolvers<StreamOutcome>();
    this.outcome = promise;
    this.#resolve = resolve;
    this.#options = options;
    this.#frames = new FrameSocket(session, {
      onMessage: (message) => this.#onMessage(message),
      onOver: (reason) => {
        this.#fail(this.#frames.frame > 0 ? unknown(reason) : refused(reason));
        onOver();
      },
    });
    this.#cancelDeadline = session.clock.after(options.headMs, () => this.#fail(late(options)));
    options.signal?.addEventListener("abort", this.#abort, { once: true });
    void this.#send(request);
  }

  close(graceMs: number): Promise<void> {
    return this.#frames.close("the transport was stopped", 1001, graceMs);
  }

  async #send({ method, path, headers, deadlineMs, body = "" }: SingleRequest): Promise<void> {
    const whole = body.length <= PART_BYTES;
    this.#frames.write().request(CALL, method, path, headers, deadlineMs ?? 0, whole ? body : null);
    if (!whole) await sendBody(this.#frames, [Buffer.from(body)]);
  }

  #onMessage(message: Message): void {
    switch (message.kind) {
      case KIND.reply:
        return this.#begin(message);
      case KIND.data: {
        if (!this.#body) throw new MeshFault("the body of a reply came before its head");
        const { chunk, ended } = readData(message);
        this.#body.push(chunk);
        return ended ? this.#end() : undefined;
      }
      case KIND.broken:
        return this.#fail(unknown(readText(message)));
      case KIND.refuse:
        return this.#fail(refused(readText(message)));
      default:
    }
  }

  #begin(message: Message): void {
    if (this.#body) throw new MeshFault("a reply has two heads");
    const { status, headers, bodyAt } = readReply(message);
    this.#cancelDeadline();
    this.#body = new StreamBody({
      pause: () => this.#frames.pause(),
      resume: () => this.#frames.resume(),
      leave: (reason) => this.#fail(unknown(reason)),
    });
    this.#resolve({ outcome: "reply", status, headers, body: this.#body });
    if (bodyAt === null) return;
    this.#body.push(message.frame.subarray(bodyAt, message.end));
    this.#end();
  }

  #end(): void {
    if (this.#finish()) this.#body?.end();
    void this.#frames.close("the call is over", 1000, CLOSE_MS);
  }

  #fail(failure: Failure): void {
    if (!this.#finish()) return;
    if (this.#body) this.#body.fail(`the reply broke off: ${failure.reason}`);
    else this.#resolve(failure);
    this.#frames.destroy(failure.reason);
  }

  readonly #abort = (): void => {
    if (this.#body) this.#body.callOff(CALLED_OFF);
    else this.#fail(unknown(CALLED_OFF));
  };

  #finish(): boolean {
    if (this.#over) return false;
    this.#over = true;
    this.#cancelDeadline();
    this.#options.signal?.removeEventListener("abort", this.#abort);
    return true;
  }
}

/** The side that answers. */
export class SingleServer {
  readonly #session: Session;
  readonly #handler: PeerHandler;
  readonly #bodyBytesMax: number;
  readonly #frames: FrameSocket;
  readonly #left = new AbortController();
  #request: RequestContent | null = null;
  #parts: Buffer[] = [];
  #bytes = 0;
  #refused = false;

  constructor(session: Session, handler: PeerHandler, bodyBytesMax: number, onOver: () => void) {
    this.#session = session;
    this.#handler = handler;
    this.#bodyBytesMax = bodyBytesMax;
    this.#frames = new FrameSocket(session, {
      onMessage: (message) => this.#onMessage(message),
      onOver: () => {
        this.#left.abort("the caller has left");
        onOver();
      },
    });
  }

  close(graceMs: number): Promise<void> {
    return this.#frames.close("the transport was stopped", 1001, graceMs);
  }

  #onMessage(message: Message): void {
    if (this.#refused) return;
    if (message.kind === KIND.request) {
      if (this.#request) throw new MeshFault("a second call came on a connection for one");
      this.#request = readRequest(message);
      if (this.#request.body !== null) void this.#serve(this.#request, this.#request.body);
    } else if (message.kind === KIND.data) {
      if (this.#request?.body !== null) throw new MeshFault("a part of a body came without its request");
      const { chunk, ended } = readData(message);
      this.#bytes += chunk.length;
      if (this.#bytes > this.#bodyBytesMax) return this.#refuse();
      this.#parts.push(chunk);
      if (!ended) return;
      const body = Buffer.concat(this.#parts).toString("utf8");
      this.#parts = [];
      void this.#serve(this.#request, body);
    }
  }

  #refuse(): void {
    this.#refused = true;
    this.#parts = [];
    const reason = `the request is larger than ${this.#bodyBytesMax} bytes`;
    this.#frames.write().text(KIND.refuse, CALL, reason);
  }

  async #serve(request: RequestContent, body: string): Promise<void> {
    const { log, peer } = this.#session;
    try {
      await this.#send(await this.#handler(received(request, peer.name, body, this.#left.signal)));
    } catch (error) {
      if (!this.#frames.open) return;
      log.warn({ err: error, peer: peer.name, path: request.path }, "a call of a peer failed");
      this.#frames.write().text(KIND.broken, CALL, "the peer failed to answer");
    }
  }

  async #send({ status, headers, body = "", stream }: PeerReply): Promise<void> {
    const { signal } = this.#left;
    const source = stream && leftWith(signal, stream);
    if (signal.aborted) return;
    const whole = !source && body.length <= PART_BYTES;
    this.#frames.write().reply(CALL, status, replyHeaders(headers), whole ? body : null);
    if (whole) return this.#frames.drain();
    await sendBody(this.#frames, source ?? [Buffer.from(body)]);
  }
}

async function sendBody(
  frames: FrameSocket,
  chunks: AsyncIterable<Buffer> | Iterable<Buffer>,
): Promise<void> {
  for await (const chunk of chunks) {
    for (let at = 0; at < chunk.length && frames.open; at += PART_BYTES) {
      frames.write().data(CALL, chunk.subarray(at, at + PART_BYTES), false);
      await frames.drain();
    }
    if (!frames.open) return;
  }
  if (!frames.open) return;
  frames.write().data(CALL, Buffer.alloc(0), true);
  await frames.drain();
}
