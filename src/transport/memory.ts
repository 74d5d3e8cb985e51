/**
 * A network inside one process, for tests and simulation: peers listen, links delay, break and fall silent.
 *
 * A request and its reply travel separately, each over the link in its own direction. One that is on its way arrives
 * even when the caller no longer waits for it, as on a real network.
 */

import type { Clock } from "../platform/clock.ts";
import { Lifecycle } from "../platform/service.ts";
import { addressOf, refused, unknown } from "./outcome.ts";
import type { CallOptions, Outcome, PeerRequest, Transport } from "./transport.ts";

export interface PeerReply {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

export interface ReceivedRequest {
  readonly from: string;
  readonly method: PeerRequest["method"];
  readonly path: string;
  /** With their names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** A handler that rejects is a peer that died over the request. */
export type PeerHandler = (request: ReceivedRequest) => Promise<PeerReply>;

export interface Link {
  /** `refused`: whoever sends is told at once. `silent`: what is sent vanishes. */
  readonly state: "open" | "refused" | "silent";
  readonly delayMs: number;
}

const OPEN: Link = { state: "open", delayMs: 0 };

interface Listener {
  readonly handler: PeerHandler;
  readonly gone: AbortController;
}

export class MemoryNetwork {
  readonly #clock: Clock;
  readonly #listeners = new Map<string, Listener>();
  readonly #links = new Map<string, Link>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The returned function ends it; what it was working on ends too, as when a process dies. */
  listen(url: string, handler: PeerHandler): () => void {
    const { origin } = new URL(url);
    if (this.#listeners.has(origin)) throw new Error(`somebody listens at ${origin} already`);
    const listener: Listener = { handler, gone: new AbortController() };
    this.#listeners.set(origin, listener);
    return () => {
      if (this.#listeners.get(origin) === listener) this.#listeners.delete(origin);
      listener.gone.abort();
    };
  }

  /** The way into the network of the node at this url. */
  transport(from: string): Transport {
    const origin = new URL(from).origin;
    return new MemoryTransport(this.#clock, (to, request) => this.#carry(origin, to, request));
  }

  /** In this direction only. */
  setLink(from: string, to: string, link: Partial<Link>): void {
    const name = linkName(from, to);
    this.#links.set(name, { ...(this.#links.get(name) ?? OPEN), ...link });
  }

  /** In both directions. */
  cut(a: string, b: string, state: "refused" | "silent" = "silent"): void {
    this.setLink(a, b, { state });
    this.setLink(b, a, { state });
  }

  heal(): void {
    this.#links.clear();
  }

  #link(from: string, to: string): Link {
    return this.#links.get(linkName(from, to)) ?? OPEN;
  }

  /** Null: no answer will ever come. */
  async #carry(from: string, to: string, request: ReceivedRequest): Promise<Outcome | null> {
    const way = this.#link(from, to);
    if (way.state === "silent") return null;
    if (way.delayMs > 0) await this.#clock.sleep(way.delayMs);
    const listener = this.#listeners.get(to);
    if (!listener || way.state === "refused") return refused(`nobody listens at ${to}`);
    const outcome = await answerOf(listener, { ...request, from });
    const back = this.#link(to, from);
    if (back.state !== "open") return null;
    if (back.delayMs > 0) await this.#clock.sleep(back.delayMs);
    return outcome;
  }
}

function linkName(from: string, to: string): string {
  return `${new URL(from).origin} -> ${new URL(to).origin}`;
}

async function answerOf({ handler, gone }: Listener, request: ReceivedRequest): Promise<Outcome> {
  const answered = Promise.withResolvers<PeerReply | null>();
  const die = (): void => answered.resolve(null);
  gone.signal.addEventListener("abort", die, { once: true });
  // On a turn of its own: a peer never runs inside the caller's call.
  setImmediate(() => {
    if (!gone.signal.aborted) (async () => handler(request))().then(answered.resolve, die);
  });
  const reply = await answered.promise;
  gone.signal.removeEventListener("abort", die);
  if (!reply) return unknown("the peer died before it had replied");
  const { status, headers = {}, body = "" } = reply;
  return { outcome: "reply", status, headers: lowerCase(headers), body };
}

function lowerCase(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}

class MemoryTransport extends Lifecycle implements Transport {
  readonly kind = "memory";
  readonly #clock: Clock;
  readonly #carry: (to: string, request: ReceivedRequest) => Promise<Outcome | null>;
  #stopping = new AbortController();

  constructor(clock: Clock, carry: (to: string, request: ReceivedRequest) => Promise<Outcome | null>) {
    super();
    this.#clock = clock;
    this.#carry = carry;
  }

  async call(peerUrl: string, request: PeerRequest, options: CallOptions): Promise<Outcome> {
    if (!this.running) return refused("the transport is not running");
    const address = addressOf(peerUrl, request, options);
    if ("outcome" in address) return address;
    const given = Promise.withResolvers<Outcome>();
    const giveUp = (reason: string): void => given.resolve(unknown(reason));
    const abort = (): void => giveUp("it was called off");
    const stop = (): void => giveUp("the transport was stopped");
    const { deadlineMs, signal } = options;
    const cancel = this.#clock.after(deadlineMs, () => giveUp(`no complete reply within ${deadlineMs} ms`));
    const stopping = this.#stopping.signal;
    signal?.addEventListener("abort", abort, { once: true });
    stopping.addEventListener("abort", stop, { once: true });
    const { method, headers = {}, body = "" } = request;
    const received = { from: "", method, path: address.path, headers: lowerCase(headers), body };
    void this.#carry(address.origin, received).then((outcome) => outcome && given.resolve(outcome));
    try {
      return await given.promise;
    } finally {
      cancel();
      signal?.removeEventListener("abort", abort);
      stopping.removeEventListener("abort", stop);
    }
  }

  protected override onStart(): void {
    this.#stopping = new AbortController();
  }

  protected override onStop(): void {
    this.#stopping.abort();
  }
}
