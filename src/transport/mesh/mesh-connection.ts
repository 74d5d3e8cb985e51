/**
 * One connection between two nodes. Either side calls the other; calls and replies share frames and do not wait for
 * each other.
 *
 * A call is `refused` until its frame has been given to the socket, and `unknown` from then on. A side that has
 * received nothing for a while sends a ping, and closes the connection when no sealed frame answers: a machine that
 * vanished does not close it.
 */

import type { WebSocket } from "ws";
import type { NodeIdentity } from "../../core/node.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Log } from "../../platform/log.ts";
import { refused, unknown } from "../outcome.ts";
import type {
  CallOptions,
  Failure,
  Outcome,
  PeerHandler,
  PeerRequest,
  StreamOptions,
  StreamOutcome,
} from "../transport.ts";
import { readData, readNumber, readReply, readText, writeHeaders } from "./message-content.ts";
import { FrameReader, HEADERS_LENGTH_MAX, KIND, MeshFault, PART_BYTES, PATH_LENGTH_MAX } from "./frame.ts";
import type { Message } from "./frame.ts";
import type { SessionKeys } from "./handshake.ts";
import { EMPTY, sendParts } from "./incoming-call.ts";
import { Outbox } from "./outbox.ts";
import { MeshCall, MeshStream } from "./outgoing-call.ts";
import type { Line, OutgoingCall } from "./outgoing-call.ts";
import { KeepAlive } from "./keep-alive.ts";
import { RequestServer } from "./request-server.ts";

export interface ConnectionLimits {
  readonly pingMs: number;
  readonly silentMs: number;
  /** Of one request or reply that has to fit into memory. */
  readonly bodyBytesMax: number;
  /** Calls under way in each direction; more are refused. */
  readonly callsMax: number;
}

export interface ConnectionOptions {
  readonly socket: WebSocket;
  readonly peer: NodeIdentity;
  /** By this side. */
  readonly dialled: boolean;
  readonly session: SessionKeys;
  readonly handler: PeerHandler;
  readonly clock: Clock;
  readonly log: Log;
  readonly limits: ConnectionLimits;
  /** The peer has proved that it has the session's keys. */
  readonly onProven: (connection: MeshConnection) => void;
  readonly onOver: (connection: MeshConnection) => void;
}

const CALL_NUMBER_MAX = 0xffff_fffe;
/** For the other side to answer the goodbye; then the socket is cut. */
const CLOSE_MS = 1_000;

export class MeshConnection implements Line {
  readonly peer: NodeIdentity;
  readonly dialled: boolean;
  /** Resolves with the reason when it is over. */
  readonly over: Promise<string>;
  readonly #o: ConnectionOptions;
  readonly #outbox: Outbox;
  readonly #reader: FrameReader;
  readonly #serving: RequestServer;
  readonly #pulse: KeepAlive;
  readonly #ended: (reason: string) => void;
  readonly #calls = new Map<number, OutgoingCall>();
  #open = true;
  #proven: boolean;
  #saidBye = false;
  #heardBye = false;
  #number = 0;

  constructor(options: ConnectionOptions) {
    const { socket, peer, dialled, session, handler, clock, log, limits } = options;
    const { callsMax, bodyBytesMax, pingMs, silentMs } = limits;
    this.#o = options;
    this.peer = peer;
    this.dialled = dialled;
    const { promise, resolve } = Promise.withResolvers<string>();
    this.over = promise;
    this.#ended = resolve;
    const outbox = new Outbox(socket, session.send);
    this.#outbox = outbox;
    this.#reader = new FrameReader(session.receive);
    const onDone = (): void => this.#closeIfDone();
    this.#serving = new RequestServer({
      peer: peer.name,
      outbox,
      handler,
      log,
      callsMax,
      bodyBytesMax,
      onDone,
    });
    this.#pulse = new KeepAlive({
      clock,
      pingMs,
      silentMs,
      ask: () => this.#proven && outbox.write().text(KIND.ping, 0),
      onSilent: (reason) => this.destroy(reason),
    });
    // The server's proof came with the upgrade; ours is a first frame.
    this.#proven = dialled;
    if (dialled) outbox.write().text(KIND.hello, 0);
    socket.on("message", (data, isBinary) => this.#onFrame(data as Buffer, isBinary));
    socket.on("error", (error) => this.destroy(error.message));
    socket.on("close", (code) =>
      this.destroy(code === 1001 ? "the peer stopped" : `it was closed (${code})`),
    );
    if (socket.readyState !== socket.OPEN) queueMicrotask(() => this.destroy("it was closed at once"));
  }

  /** Whether new calls may go here. */
  get usable(): boolean {
    return this.#open && this.#proven && !this.#saidBye && !this.#heardBye;
  }

  call(
    request: PeerRequest,
    path: string,
    deadlineMs: number | null,
    options: CallOptions,
  ): Promise<Outcome> {
    const { clock, limits } = this.#o;
    const call = this.#begin(
      request,
      path,
      deadlineMs,
      (id, frame) => new MeshCall(this, id, frame, clock, options, limits.bodyBytesMax),
    );
    return call instanceof MeshCall ? call.outcome : Promise.resolve(call);
  }

  stream(
    request: PeerRequest,
    path: string,
    deadlineMs: number | null,
    options: StreamOptions,
  ): Promise<StreamOutcome> {
    const { clock } = this.#o;
    const call = this.#begin(
      request,
      path,
      deadlineMs,
      (id, frame) => new MeshStream(this, id, frame, clock, options),
    );
    return call instanceof MeshStream ? call.outcome : Promise.resolve(call);
  }

  /** Lets what is under way end, on both sides; then the dialler closes it. There is a better connection to this peer. */
  retire(): void {
    if (this.#saidBye || !this.#open) return;
    this.#saidBye = true;
    this.#outbox.write().text(KIND.bye, 0);
    this.#closeIfDone();
  }

  /** With a goodbye, and without waiting for long. Calls under way end now, each with its honest outcome. */
  async close(graceMs: number): Promise<void> {
    if (!this.#open) return;
    const closed = Promise.withResolvers<void>();
    this.#o.socket.once("close", () => closed.resolve());
    this.#sayGoodbye("the transport was stopped", 1001, graceMs);
    await closed.promise;
  }

  destroy(reason: string): void {
    this.#end(reason);
    this.#o.socket.terminate();
  }

  cancel(id: number): void {
    if (!this.#calls.delete(id) || !this.#open) return;
    this.#outbox.write().text(KIND.cancel, id);
    this.#closeIfDone();
  }

  grant(id: number, bytes: number): void {
    if (this.#open) this.#outbox.write().number(KIND.replyCredit, id, bytes);
  }

  #begin<Call extends OutgoingCall>(
    request: PeerRequest,
    path: string,
    deadlineMs: number | null,
    make: (id: number, frame: number) => Call,
  ): Call | Failure {
    const { callsMax } = this.#o.limits;
    if (!this.usable) return refused("the connection is gone");
    if (this.#calls.size >= callsMax) return refused(`${callsMax} calls to this peer are under way`);
    if (this.#outbox.congested) return refused("the peer does not take what is sent to it");
    const headers = writeHeaders(request.headers);
    if (headers === null) return refused("a header contains a line break");
    if (path.length > PATH_LENGTH_MAX || headers.length > HEADERS_LENGTH_MAX) {
      return refused("the path or the headers of the request are too long");
    }
    const id = this.#freeNumber();
    const { body = "" } = request;
    const small = body.length <= PART_BYTES;
    const writer = this.#outbox.write();
    const call = make(id, writer.frame);
    this.#calls.set(id, call);
    writer.request(id, request.method, path, headers, deadlineMs ?? 0, small ? body : null);
    if (!small) void this.#sendBody(call, Buffer.from(body));
    return call;
  }

  async #sendBody({ id, flow }: OutgoingCall, body: Buffer): Promise<void> {
    const send = (chunk: Buffer, ended: boolean): Promise<void> =>
      this.#outbox.part(KIND.requestData, id, chunk, ended);
    if (await sendParts(body, flow, PART_BYTES, send)) await send(EMPTY, true);
  }

  #freeNumber(): number {
    do this.#number = this.#number >= CALL_NUMBER_MAX ? 1 : this.#number + 1;
    while (this.#calls.has(this.#number));
    return this.#number;
  }

  #onFrame(data: Buffer, isBinary: boolean): void {
    if (!this.#open) return;
    try {
      if (!isBinary) throw new MeshFault("a frame is text");
      for (const message of this.#reader.messages(data)) {
        this.#pulse.heard();
        if (!this.#proven) {
          this.#proven = true;
          this.#o.onProven(this);
        }
        this.#onMessage(message);
        if (!this.#open) return;
      }
    } catch (error) {
      const reason = error instanceof MeshFault ? error.message : "a frame could not be read";
      this.#o.log.warn({ err: error, peer: this.peer.name }, "gave up a connection of the mesh");
      this.destroy(reason);
    }
  }

  #onMessage(message: Message): void {
    const { kind, id } = message;
    switch (kind) {
      case KIND.request:
        return this.#serving.begin(message);
      case KIND.reply: {
        const { status, headers, bodyAt } = readReply(message);
        const call = this.#taking(id, bodyAt !== null);
        call?.head(status, headers, message.frame, bodyAt, message.end);
        return this.#closeIfDone();
      }
      case KIND.replyData: {
        const { chunk, ended } = readData(message);
        this.#taking(id, ended)?.data(chunk, ended);
        return this.#closeIfDone();
      }
      case KIND.requestData:
        return this.#serving.more(message);
      case KIND.requestCredit:
        return this.#calls.get(id)?.flow.grant(readNumber(message));
      case KIND.replyCredit:
        return this.#serving.credit(message);
      case KIND.cancel:
        return this.#serving.leave(id);
      case KIND.broken:
        this.#taking(id, true)?.fail(unknown(readText(message)));
        return this.#closeIfDone();
      case KIND.refuse:
        this.#taking(id, true)?.fail(refused(readText(message)));
        return this.#closeIfDone();
      case KIND.bye:
        this.#heardBye = true;
        this.retire();
        return this.#closeIfDone();
      case KIND.ping:
        return this.#outbox.write().text(KIND.pong, 0);
      default:
        // hello and pong, and kinds that a newer version may add and that ask nothing of us.
        return;
    }
  }

  #taking(id: number, last: boolean): OutgoingCall | undefined {
    const call = this.#calls.get(id);
    if (last) this.#calls.delete(id);
    return call;
  }

  #closeIfDone(): void {
    if (!this.#saidBye || !this.#heardBye || !this.dialled || !this.#open) return;
    if (this.#calls.size === 0 && this.#serving.size === 0) {
      this.#sayGoodbye("another connection took over", 1000, CLOSE_MS);
    }
  }

  #sayGoodbye(reason: string, code: number, graceMs: number): void {
    const { socket, clock } = this.#o;
    this.#outbox.flush();
    this.#end(reason);
    const cancel = clock.after(graceMs, () => socket.terminate());
    socket.once("close", cancel);
    socket.close(code);
  }

  #end(reason: string): void {
    if (!this.#open) return;
    this.#open = false;
    this.#pulse.stop();
    this.#outbox.close();
    const unsent = this.#outbox.frame;
    const calls = [...this.#calls.values()];
    this.#calls.clear();
    for (const call of calls) call.fail(call.frame < unsent ? unknown(reason) : refused(reason));
    this.#serving.leaveAll();
    this.#ended(reason);
    this.#o.onOver(this);
  }
}
