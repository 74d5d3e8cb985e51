/**
 * A network inside one process, for tests and the simulation: peers listen; links delay, lose, break and fall silent.
 *
 * A request and its reply travel separately, each over the link in its own direction. A message in transit arrives even
 * when the caller no longer waits for it, as on a real network. A process that is paused (its clock is) gets what was sent
 * to it when it runs again; the machine answers for it that it listens.
 */

import type { Clock } from "../../src/platform/clock.ts";
import type { Random } from "../../src/platform/random.ts";
import { Lifecycle } from "../../src/platform/service.ts";
import {
  CALLED_OFF,
  limitMs,
  mistakeIn,
  peerAddress,
  refused,
  late,
  unknown,
} from "../../src/transport/call-outcome.ts";
import { StreamBody } from "../../src/transport/stream-body.ts";
import type {
  CallOptions,
  Failure,
  Outcome,
  PeerHandler,
  PeerReply,
  PeerRequest,
  ReceivedRequest,
  ReplyHead,
  StreamOptions,
  StreamOutcome,
  Transport,
} from "../../src/transport/transport.ts";

export type { PeerHandler, PeerReply, ReceivedRequest } from "../../src/transport/transport.ts";

export interface Link {
  /** `refused`: the sender learns it at once. `silent`: what is sent vanishes. */
  readonly state: "open" | "refused" | "silent";
  readonly delayMs: number;
  /** Up to so much more, for each message anew: a later one may arrive first. */
  readonly jitterMs: number;
  /** The share of messages that vanish. */
  readonly loss: number;
  /** The share of requests that arrive a second time, some time later. */
  readonly duplicates: number;
}

const OPEN: Link = { state: "open", delayMs: 0, jitterMs: 0, loss: 0, duplicates: 0 };
/** A copy of a request arrives within this time. */
const DUPLICATE_MS = 5_000;

interface Listener {
  readonly handler: PeerHandler;
  /** Of its process. */
  readonly clock: Clock;
  readonly gone: AbortController;
}

export class MemoryNetwork {
  /** Of all links that have none of their own. */
  usual: Link = OPEN;
  readonly counts = { sent: 0, lost: 0, lostReplies: 0, duplicates: 0 };
  readonly #clock: Clock;
  readonly #random: Pick<Random, "chance">;
  readonly #listeners = new Map<string, Listener>();
  readonly #links = new Map<string, Link>();

  constructor(clock: Clock, random: Pick<Random, "chance"> = { chance: () => 0.5 }) {
    this.#clock = clock;
    this.#random = random;
  }

  /** The returned function ends it; what it was working on ends too, as when a process dies. */
  listen(url: string, handler: PeerHandler, clock = this.#clock): () => void {
    const { origin } = new URL(url);
    if (this.#listeners.has(origin)) throw new Error(`another handler listens at ${origin}`);
    const listener: Listener = { handler, clock, gone: new AbortController() };
    this.#listeners.set(origin, listener);
    return () => {
      if (this.#listeners.get(origin) === listener) this.#listeners.delete(origin);
      listener.gone.abort();
    };
  }

  /** The way into the network of the node at this url, which calls itself `name`. */
  transport(from: string, clock = this.#clock, name?: string): Transport {
    const origin = new URL(from).origin;
    return new MemoryTransport(clock, (to, request) =>
      this.#carry(origin, to, { ...request, from: name ?? origin }),
    );
  }

  /** Whether a process listens there. The machine answers, also for a process that is paused. */
  async probe(from: string, to: string): Promise<"listening" | "refusing" | "silent"> {
    const { origin } = new URL(to);
    if (!(await this.crosses(from, origin))) return "silent";
    const found = this.#listeners.has(origin) ? "listening" : "refusing";
    return (await this.crosses(origin, from)) ? found : "silent";
  }

  /** Resolves when the process that listens there now has ended; at once if there is none. */
  async ended(to: string, signal: AbortSignal): Promise<void> {
    const gone = this.#listeners.get(new URL(to).origin)?.gone.signal;
    if (!gone || gone.aborted || signal.aborted) return;
    await new Promise<void>((resolve) => {
      for (const each of [gone, signal]) each.addEventListener("abort", () => resolve(), { once: true });
    });
  }

  /** In this direction only. */
  setLink(from: string, to: string, link: Partial<Link>): void {
    const name = linkName(from, to);
    this.#links.set(name, { ...(this.#links.get(name) ?? this.usual), ...link });
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
    return this.#links.get(linkName(from, to)) ?? this.usual;
  }

  /** Null: no answer will ever come. */
  async #carry(from: string, to: string, request: ReceivedRequest): Promise<Carried | null> {
    const { state, duplicates } = this.#link(from, to);
    if (duplicates > 0 && this.#random.chance() < duplicates) this.#repeat(to, request);
    if (state !== "refused" && !(await this.crosses(from, to))) return null;
    const listener = this.#listeners.get(to);
    if (!listener || state === "refused") return refused(`nothing listens at ${to}`);
    const reply = await answerOf(listener, request);
    if (!(await this.crosses(to, from))) {
      if (reply) this.counts.lostReplies++;
      return null;
    }
    if (!reply) return unknown(DIED);
    const { status, headers = {} } = reply;
    return {
      outcome: "reply",
      status,
      headers: lowerCase(headers),
      gone: listener.gone.signal,
      chunks: this.#chunks(reply, () => this.crosses(to, from)),
    };
  }

  #repeat(to: string, request: ReceivedRequest): void {
    this.counts.duplicates++;
    this.#clock.after(DUPLICATE_MS * this.#random.chance(), () => {
      const listener = this.#listeners.get(to);
      if (listener) void answerOf(listener, request);
    });
  }

  /** Sends one message. False: it is lost. */
  async crosses(from: string, to: string): Promise<boolean> {
    const { state, delayMs, jitterMs, loss } = this.#link(from, to);
    this.counts.sent++;
    const lost = state !== "open" || (loss > 0 && this.#random.chance() < loss);
    if (lost) this.counts.lost++;
    const tookMs = delayMs + (jitterMs > 0 ? jitterMs * this.#random.chance() : 0);
    if (!lost && tookMs > 0) await this.#clock.sleep(tookMs);
    return !lost;
  }

  /** The body as it arrives. A lost chunk is lost for good and so is all that comes after it: it waits for ever. */
  async *#chunks(reply: PeerReply, cross: () => Promise<boolean>): AsyncGenerator<Buffer, void, void> {
    if (!reply.stream) {
      if (reply.body) yield Buffer.from(reply.body);
      return;
    }
    for await (const chunk of reply.stream) {
      if (!(await cross())) await new Promise<never>(() => {});
      yield chunk;
    }
  }
}

const DIED = "the peer died before it had replied";

type Carried =
  | (ReplyHead & {
      /** Aborted when the peer dies. */
      readonly gone: AbortSignal;
      readonly chunks: AsyncGenerator<Buffer, void, void>;
    })
  | Failure;

function linkName(from: string, to: string): string {
  return `${new URL(from).origin} -> ${new URL(to).origin}`;
}

/** Null: it died over the request. */
async function answerOf(
  { handler, clock, gone }: Listener,
  request: ReceivedRequest,
): Promise<PeerReply | null> {
  const answered = Promise.withResolvers<PeerReply | null>();
  const die = (): void => answered.resolve(null);
  gone.signal.addEventListener("abort", die, { once: true });
  // On a turn of its own: a peer never runs inside the caller's call.
  void clock.turn().then(() => {
    if (!gone.signal.aborted) (async () => handler(request))().then(answered.resolve, die);
  });
  const reply = await answered.promise;
  gone.signal.removeEventListener("abort", die);
  return reply;
}

/** Fills a body until it ends, its reader leaves, or one of the signals ends it. */
function pour(
  { chunks, gone }: Extract<Carried, { outcome: "reply" }>,
  stopping: AbortSignal,
  signal?: AbortSignal,
): StreamBody {
  let goOn = Promise.withResolvers<void>();
  goOn.resolve();
  const body = new StreamBody({
    pause: () => (goOn = Promise.withResolvers()),
    resume: () => goOn.resolve(),
    leave: () => finish(),
  });
  const abort = (): void => body.callOff(CALLED_OFF);
  const stop = (): void => body.callOff("the transport was stopped");
  const die = (): void => {
    body.fail("the peer died in the middle of its reply");
    finish();
  };
  let finished = false;
  const finish = (): void => {
    finished = true;
    goOn.resolve();
    signal?.removeEventListener("abort", abort);
    stopping.removeEventListener("abort", stop);
    gone.removeEventListener("abort", die);
    // Not awaited: one that waits for ever never returns.
    chunks.return().catch(() => {});
  };
  signal?.addEventListener("abort", abort, { once: true });
  stopping.addEventListener("abort", stop, { once: true });
  gone.addEventListener("abort", die, { once: true });
  if (signal?.aborted) abort();
  else if (gone.aborted) die();
  void (async () => {
    for await (const chunk of chunks) {
      body.push(chunk);
      await goOn.promise;
      if (finished) return;
    }
    body.end();
  })()
    .catch((error: unknown) => body.fail(`the reply broke off: ${String(error)}`))
    .finally(finish);
  return body;
}

function lowerCase(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}

function isFailure(result: object): boolean {
  return "outcome" in result && result.outcome !== "reply";
}

class MemoryTransport extends Lifecycle implements Transport {
  readonly #clock: Clock;
  readonly #carry: (to: string, request: ReceivedRequest) => Promise<Carried | null>;
  #stopping = new AbortController();

  constructor(clock: Clock, carry: (to: string, request: ReceivedRequest) => Promise<Carried | null>) {
    super();
    this.#clock = clock;
    this.#carry = carry;
  }

  call(peerUrl: string, request: PeerRequest, options: CallOptions): Promise<Outcome> {
    return this.#within<Outcome>(peerUrl, request, options, async (carried, over) => {
      const { outcome, status, headers } = carried;
      const parts: Buffer[] = [];
      try {
        for await (const chunk of pour(carried, over)) parts.push(chunk);
      } catch (error) {
        return unknown((error as Error).message);
      }
      return { outcome, status, headers, body: Buffer.concat(parts).toString("utf8") };
    });
  }

  stream(peerUrl: string, request: PeerRequest, options: StreamOptions): Promise<StreamOutcome> {
    return this.#within<StreamOutcome>(peerUrl, request, options, async (carried) => {
      const { outcome, status, headers } = carried;
      return { outcome, status, headers, body: pour(carried, this.#stopping.signal, options.signal) };
    });
  }

  async #within<Result extends object>(
    peerUrl: string,
    request: PeerRequest,
    options: CallOptions | StreamOptions,
    take: (carried: Extract<Carried, { outcome: "reply" }>, over: AbortSignal) => Promise<Result>,
  ): Promise<Result | Failure> {
    if (!this.running) return refused("the transport is not running");
    const address = peerAddress(peerUrl);
    if (typeof address !== "string") return address;
    const mistake = mistakeIn(request, options);
    if (mistake) return mistake;
    const given = Promise.withResolvers<Result | Failure>();
    const over = new AbortController();
    const giveUp = (reason: string): void => given.resolve(unknown(reason));
    const abort = (): void => giveUp(CALLED_OFF);
    const stop = (): void => giveUp("the transport was stopped");
    const { signal } = options;
    const cancel = this.#clock.after(limitMs(options), () => given.resolve(late(options)));
    const stopping = this.#stopping.signal;
    signal?.addEventListener("abort", abort, { once: true });
    stopping.addEventListener("abort", stop, { once: true });
    void this.#send(new URL(address).origin, request, over.signal).then(async (carried) => {
      if (!carried) return;
      await this.#clock.turn();
      if (carried.outcome !== "reply") given.resolve(carried);
      else if (!over.signal.aborted) given.resolve(await take(carried, over.signal));
      else carried.chunks.return().catch(() => {});
    });
    const result = await given.promise;
    cancel();
    signal?.removeEventListener("abort", abort);
    stopping.removeEventListener("abort", stop);
    if (isFailure(result)) over.abort();
    return result;
  }

  #send(origin: string, request: PeerRequest, signal: AbortSignal): Promise<Carried | null> {
    const { method, path, headers = {}, body = "" } = request;
    const received = { from: "", method, path, headers: lowerCase(headers), body, signal };
    return this.#carry(origin, received);
  }

  protected override onStart(): void {
    this.#stopping = new AbortController();
  }

  protected override onStop(): void {
    this.#stopping.abort();
  }
}
