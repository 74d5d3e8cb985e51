/**
 * The connection that two nodes share for small calls. Either side calls the other; calls and replies share frames and
 * do not wait for each other. A reply is bound to its request by the number of the call, within a session whose keys
 * both nodes derived from fresh nonces.
 *
 * A call is `refused` until its frame has been given to the socket, and `unknown` from then on.
 */

import type { NodeIdentity } from "../../core/node.ts";
import type { Clock } from "../../platform/clock.ts";
import { CALLED_OFF, deadlineOf, late, refused, unknown } from "../call-outcome.ts";
import type { CallOptions, Failure, Outcome, PeerHandler, PeerRequest } from "../transport.ts";
import { readReply, readText, requestHeaders } from "./message-content.ts";
import { KIND, type Message } from "./frame.ts";
import { FrameSocket, type Session } from "./frame-socket.ts";
import { RequestServer, type ParkedReplies } from "./request-server.ts";

export interface ConnectionLimits {
  readonly pingMs: number;
  readonly silentMs: number;
  /** Of one request or reply that has to fit into memory. */
  readonly bodyBytesMax: number;
  /** Calls under way in each direction; more are refused. */
  readonly callsMax: number;
}

export interface ConnectionEvents {
  readonly onProven: (connection: MeshConnection) => void;
  readonly onOver: (connection: MeshConnection) => void;
}

/** Fetches a reply that the peer keeps under a ticket. */
export type FetchReply = (ticket: string, options: CallOptions) => Promise<Outcome>;

const CALL_NUMBER_MAX = 0xffff_fffe;
/** For the other side to close as well; then the socket is cut. */
const CLOSE_MS = 1_000;

export class MeshConnection {
  readonly peer: NodeIdentity;
  readonly dialled: boolean;
  readonly over: Promise<void>;
  readonly #clock: Clock;
  readonly #callsMax: number;
  readonly #frames: FrameSocket;
  readonly #serving: RequestServer;
  readonly #calls = new Map<number, OutgoingCall>();
  #saidBye = false;
  #heardBye = false;
  #number = 0;

  constructor(
    session: Session,
    handler: PeerHandler,
    parked: ParkedReplies,
    limits: ConnectionLimits,
    events: ConnectionEvents,
  ) {
    const { peer, dialled, clock } = session;
    this.#clock = clock;
    this.#callsMax = limits.callsMax;
    this.peer = peer;
    this.dialled = dialled;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.over = promise;
    const frames = (this.#frames = new FrameSocket(session, {
      onMessage: (message) => this.#onMessage(message),
      onProven: () => events.onProven(this),
      onOver: (reason) => {
        this.#end(reason);
        resolve();
        events.onOver(this);
      },
    }));
    const onDone = (): void => this.#closeIfDone();
    this.#serving = new RequestServer({ session, frames, handler, parked, limits, onDone });
    if (dialled) frames.write().text(KIND.hello, 0);
  }

  get usable(): boolean {
    return this.#frames.open && this.#frames.proven && !this.#saidBye && !this.#heardBye;
  }

  async call(request: PeerRequest, options: CallOptions, fetch: FetchReply): Promise<Outcome> {
    const callsMax = this.#callsMax;
    if (!this.usable) return refused("the connection is gone");
    if (this.#calls.size >= callsMax) return refused(`${callsMax} calls to this peer are under way`);
    if (this.#frames.congested) return refused("the peer does not read what is sent to it");
    const headers = requestHeaders(request);
    if (typeof headers !== "string") return headers;
    const id = this.#freeNumber();
    const writer = this.#frames.write();
    const call = new OutgoingCall(this.#clock, writer.frame, options, fetch, () => this.#cancel(id));
    this.#calls.set(id, call);
    const { method, path, body = "" } = request;
    writer.request(id, method, path, headers, deadlineOf(request, options) ?? 0, body);
    return call.outcome;
  }

  /** Lets the calls under way end, on both sides; then the dialler closes it. There is a better connection to this peer. */
  retire(): void {
    if (this.#saidBye || !this.#frames.open) return;
    this.#saidBye = true;
    this.#frames.write().text(KIND.bye, 0);
    this.#closeIfDone();
  }

  /** Calls under way end now, as unknown if they were sent. */
  close(graceMs: number): Promise<void> {
    return this.#frames.close("the transport was stopped", 1001, graceMs);
  }

  destroy(reason: string): void {
    this.#frames.destroy(reason);
  }

  #cancel(id: number): void {
    if (!this.#calls.delete(id) || !this.#frames.open) return;
    this.#frames.write().text(KIND.cancel, id);
    this.#closeIfDone();
  }

  #freeNumber(): number {
    do this.#number = this.#number >= CALL_NUMBER_MAX ? 1 : this.#number + 1;
    while (this.#calls.has(this.#number));
    return this.#number;
  }

  #onMessage(message: Message): void {
    const { kind, id } = message;
    switch (kind) {
      case KIND.request:
        return this.#serving.begin(message);
      case KIND.cancel:
        return this.#serving.leave(id);
      case KIND.reply: {
        const { status, headers, bodyAt } = readReply(message);
        const body = message.frame.toString("utf8", bodyAt ?? message.end, message.end);
        return this.#finish(id, { outcome: "reply", status, headers, body });
      }
      case KIND.parked:
        this.#taken(id)?.fetch(readText(message));
        return this.#closeIfDone();
      case KIND.broken:
        return this.#finish(id, unknown(readText(message)));
      case KIND.refuse:
        return this.#finish(id, refused(readText(message)));
      case KIND.bye:
        this.#heardBye = true;
        this.retire();
        return this.#closeIfDone();
      default:
        // hello, and kinds that a newer version may add and that need no answer.
        return;
    }
  }

  #finish(id: number, outcome: Outcome): void {
    this.#taken(id)?.finish(outcome);
    this.#closeIfDone();
  }

  #taken(id: number): OutgoingCall | undefined {
    const call = this.#calls.get(id);
    this.#calls.delete(id);
    return call;
  }

  #closeIfDone(): void {
    if (!this.#saidBye || !this.#heardBye || !this.dialled) return;
    if (this.#calls.size === 0 && this.#serving.size === 0)
      void this.#frames.close("another connection took over", 1000, CLOSE_MS);
  }

  #end(reason: string): void {
    const unsent = this.#frames.frame;
    const calls = [...this.#calls.values()];
    this.#calls.clear();
    for (const call of calls) call.finish(call.frame < unsent ? unknown(reason) : refused(reason));
    this.#serving.leaveAll();
  }
}

/** A call of this node. Each call ends exactly once. */
class OutgoingCall {
  readonly outcome: Promise<Outcome>;
  readonly frame: number;
  readonly #clock: Clock;
  readonly #options: CallOptions;
  readonly #fetch: FetchReply;
  /** The caller does not wait any more. */
  readonly #leave: () => void;
  readonly #endsAt: number;
  readonly #resolve: (outcome: Outcome) => void;
  readonly #cancelDeadline: () => void;

  constructor(clock: Clock, frame: number, options: CallOptions, fetch: FetchReply, leave: () => void) {
    const { deadlineMs, signal } = options;
    const { promise, resolve } = Promise.withResolvers<Outcome>();
    this.outcome = promise;
    this.frame = frame;
    this.#clock = clock;
    this.#options = options;
    this.#fetch = fetch;
    this.#leave = leave;
    this.#resolve = resolve;
    this.#endsAt = clock.monotonic() + deadlineMs;
    this.#cancelDeadline = clock.after(deadlineMs, () => this.#giveUp(late(options)));
    signal?.addEventListener("abort", this.#onAbort, { once: true });
  }

  finish(outcome: Outcome): void {
    this.#cancelDeadline();
    this.#options.signal?.removeEventListener("abort", this.#onAbort);
    this.#resolve(outcome);
  }

  /** The peer has carried the call out: without the reply its outcome is unknown, whatever became of the fetch. */
  fetch(ticket: string): void {
    const deadlineMs = this.#endsAt - this.#clock.monotonic();
    void this.#fetch(ticket, { ...this.#options, deadlineMs }).then((outcome) =>
      this.finish(outcome.outcome === "reply" ? outcome : { ...outcome, outcome: "unknown" }),
    );
  }

  readonly #onAbort = (): void => this.#giveUp(unknown(CALLED_OFF));

  #giveUp(failure: Failure): void {
    this.finish(failure);
    this.#leave();
  }
}
