/**
 * Calls to peers over HTTP/1.1, with one pool of keep-alive connections per peer.
 *
 * A failed call is `refused` or `unknown`, depending on whether its first byte may have been sent. Before that (no
 * name, no route, no listener, no TLS, deadline while waiting for a connection) it cannot have had an effect. A reply
 * counts only if its end was received: a truncated reply is `unknown`, and so is one that only the end of the
 * connection delimits. Redirects are replies; following one would send signed requests to any address that a server
 * names.
 */

import { Pool } from "undici";
import type { Clock } from "../../platform/clock.ts";
import { Lifecycle } from "../../platform/service.ts";
import { HttpCall } from "./http-call.ts";
import { HttpStream } from "./http-stream.ts";
import { addressOf, refused } from "../outcome.ts";
import type { Address } from "../outcome.ts";
import type {
  CallOptions,
  Outcome,
  PeerRequest,
  StreamOptions,
  StreamOutcome,
  Transport,
} from "../transport.ts";

export interface HttpTransportOptions {
  readonly clock: Clock;
  /** Peers whose connections are kept; the one not called for longest makes room. Fewer than peers costs handshakes. */
  readonly peersMax?: number;
  /** Connections to one peer. Calls beyond wait, and are `refused` if their deadline comes first. */
  readonly connectionsMax?: number;
  /** A peer that cannot be connected to is given up after this, also when the deadline is later. */
  readonly connectMs?: number;
  /** A reply beyond this is given up: it has to fit into memory. */
  readonly replyBytesMax?: number;
}

export class HttpTransport extends Lifecycle implements Transport {
  readonly kind = "http";
  readonly #clock: Clock;
  readonly #peersMax: number;
  readonly #connectionsMax: number;
  readonly #connectMs: number;
  readonly #replyBytesMax: number;
  /** By origin; the one used last stands last. */
  readonly #pools = new Map<string, Pool>();
  readonly #leaving = new Set<Pool>();

  constructor(options: HttpTransportOptions) {
    super();
    this.#clock = options.clock;
    this.#peersMax = options.peersMax ?? 256;
    this.#connectionsMax = options.connectionsMax ?? 32;
    this.#connectMs = options.connectMs ?? 5_000;
    this.#replyBytesMax = options.replyBytesMax ?? 64 * 1024 * 1024;
  }

  async call(peerUrl: string, request: PeerRequest, options: CallOptions): Promise<Outcome> {
    if (!this.running) return refused("the transport is not running");
    const address = addressOf(peerUrl, request, options);
    if ("outcome" in address) return address;
    const call = new HttpCall(this.#clock, options, this.#replyBytesMax);
    this.#dispatch(address, request, call);
    return call.outcome;
  }

  async stream(peerUrl: string, request: PeerRequest, options: StreamOptions): Promise<StreamOutcome> {
    if (!this.running) return refused("the transport is not running");
    const address = addressOf(peerUrl, request, options);
    if ("outcome" in address) return address;
    const stream = new HttpStream(this.#clock, options);
    this.#dispatch(address, request, stream);
    return stream.outcome;
  }

  protected override onStart(): void {}

  /** Calls under way end at once, each with its honest outcome. */
  protected override async onStop(): Promise<void> {
    const pools = [...this.#pools.values(), ...this.#leaving];
    this.#pools.clear();
    await Promise.all(pools.map((pool) => pool.destroy()));
  }

  #dispatch({ origin, path }: Address, request: PeerRequest, handler: HttpCall | HttpStream): void {
    this.#pool(origin).dispatch(
      {
        path,
        method: request.method,
        headers: { ...request.headers },
        body: request.body ?? null,
        // The deadline of the call is the only limit: these would cut a peer that is slow within it.
        headersTimeout: 0,
        bodyTimeout: 0,
      },
      handler,
    );
  }

  #pool(origin: string): Pool {
    const known = this.#pools.get(origin);
    // Out and in again: the map's order is the order of use.
    this.#pools.delete(origin);
    const pool = known ?? this.#open(origin);
    this.#pools.set(origin, pool);
    return pool;
  }

  #open(origin: string): Pool {
    for (const [longestUnused, pool] of this.#pools) {
      if (this.#pools.size < this.#peersMax) break;
      this.#pools.delete(longestUnused);
      this.#leave(pool);
    }
    return new Pool(origin, {
      connections: this.#connectionsMax,
      // One call at a time on a connection: with more, a slow reply would hold up others, and an abort would end them.
      pipelining: 1,
      allowH2: false,
      connect: { timeout: this.#connectMs },
    });
  }

  /** Lets the calls under way end by themselves. */
  #leave(pool: Pool): void {
    this.#leaving.add(pool);
    const left = (): void => void this.#leaving.delete(pool);
    pool.close().then(left, left);
  }
}
