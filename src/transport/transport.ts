/**
 * The transport port: one call to a peer, with three kinds of outcome. Whoever retries must know them apart:
 *
 * - `reply`: the peer answered, with whatever status.
 * - `refused`: the call certainly did not reach the peer's handler. Trying elsewhere is safe.
 * - `unknown`: it may have been carried out. Trying elsewhere is safe only with an idempotency key.
 */

import type { Service } from "../platform/service.ts";

export interface Transport extends Service {
  readonly kind: string;
  call(peerUrl: string, request: PeerRequest, options: CallOptions): Promise<Outcome>;
}

export interface PeerRequest {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** With its query. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as it is. */
  readonly body?: string;
}

export interface CallOptions {
  /** For the whole call, until the last byte of the body. */
  readonly deadlineMs: number;
  readonly signal?: AbortSignal;
}

export type Outcome =
  | {
      readonly outcome: "reply";
      readonly status: number;
      readonly headers: Readonly<Record<string, string>>;
      readonly body: string;
    }
  | { readonly outcome: "refused"; readonly reason: string }
  | { readonly outcome: "unknown"; readonly reason: string };
