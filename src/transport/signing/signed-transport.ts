/**
 * Signs the calls of another transport. Replies are only as trustworthy as the connection; the mesh also authenticates
 * replies.
 */

import type { NodeIdentity } from "../../core/node.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Random } from "../../platform/random.ts";
import type { ClusterKeys } from "./cluster-keys.ts";
import { addressOf, limitMs } from "../outcome.ts";
import { HEADER, sign } from "./signing.ts";
import type {
  CallOptions,
  Outcome,
  PeerRequest,
  StreamOptions,
  StreamOutcome,
  Transport,
} from "../transport.ts";

export interface SignedTransportOptions {
  readonly inner: Transport;
  readonly keys: ClusterKeys;
  readonly self: NodeIdentity;
  readonly clock: Clock;
  readonly random: Random;
}

export class SignedTransport implements Transport {
  readonly kind: string;
  readonly #inner: Transport;
  readonly #keys: ClusterKeys;
  readonly #self: NodeIdentity;
  readonly #clock: Clock;
  readonly #random: Random;

  constructor({ inner, keys, self, clock, random }: SignedTransportOptions) {
    this.kind = inner.kind;
    this.#inner = inner;
    this.#keys = keys;
    this.#self = self;
    this.#clock = clock;
    this.#random = random;
  }

  start(): Promise<void> {
    return this.#inner.start();
  }

  stop(): Promise<void> {
    return this.#inner.stop();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  call(peerUrl: string, request: PeerRequest, options: CallOptions): Promise<Outcome> {
    return this.#inner.call(peerUrl, this.#signed(peerUrl, request, options), options);
  }

  stream(peerUrl: string, request: PeerRequest, options: StreamOptions): Promise<StreamOutcome> {
    return this.#inner.stream(peerUrl, this.#signed(peerUrl, request, options), options);
  }

  #signed(peerUrl: string, request: PeerRequest, options: CallOptions | StreamOptions): PeerRequest {
    const address = addressOf(peerUrl, request, options);
    // What cannot be sent the inner transport refuses, in its own words.
    if ("outcome" in address) return request;
    const headers = sign(
      this.#keys,
      { ...request, path: address.path, body: request.body ?? "" },
      {
        from: this.#self,
        to: options.to ?? null,
        time: this.#clock.now(),
        nonce: this.#random.uuid(),
        deadlineMs: deadlineOf(request, options),
        hop: hopOf(request),
      },
    );
    return { ...request, headers };
  }
}

/** The caller's own word, where it passes on a call that began elsewhere. A stream has no end that it must meet. */
export function deadlineOf(request: PeerRequest, options: CallOptions | StreamOptions): number | null {
  const given = Number(request.headers?.[HEADER.deadline]);
  if (Number.isSafeInteger(given) && given > 0) return given;
  const limit = limitMs(options);
  return "headMs" in options || !Number.isFinite(limit) ? null : Math.ceil(limit);
}

function hopOf(request: PeerRequest): number {
  const given = Number(request.headers?.[HEADER.hop] ?? 0);
  return Number.isSafeInteger(given) && given >= 0 ? given : 0;
}
