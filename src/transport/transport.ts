/**
 * Transport: one call to a peer, with three kinds of outcome. Code that retries must distinguish them:
 *
 * - `reply`: the peer answered, with any status.
 * - `refused`: the call certainly did not reach the peer's handler. Trying another node is safe.
 * - `unknown`: the call may have had an effect. Trying another node is safe only with an idempotency key.
 *
 * `call` returns the whole reply, `stream` its head and then the body as it arrives, for replies that are passed on.
 */

import type { Server } from "node:http";
import type { NodeName } from "../core/ids.ts";
import type { Service } from "../platform/service.ts";

export interface Transport extends Service {
  call(peerUrl: string, request: PeerRequest, options: CallOptions): Promise<Outcome>;
  stream(peerUrl: string, request: PeerRequest, options: StreamOptions): Promise<StreamOutcome>;
}

/** Also answers calls, and notices that a peer is gone. */
export interface NodeTransport extends Transport {
  /** Until a handler is given, calls are answered with 503. */
  serve(handler: PeerHandler): void;
  /** Accepts peers at this server, until the returned function is called. */
  attach(server: Server): () => Promise<void>;
  /** Keeps a connection open and yields each time that it is lost, which proves nothing: the peer may still run. */
  watch(peerUrl: string, signal: AbortSignal, name?: NodeName | null): AsyncIterable<void>;
}

export interface PeerRequest {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** With its query. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

interface Addressed {
  /** The node that is meant, so that no other one acts on the call. Absent only while its name is not known: a join. */
  readonly to?: NodeName;
  readonly signal?: AbortSignal;
}

export interface CallOptions extends Addressed {
  /** For the whole call, until the last byte of the body. */
  readonly deadlineMs: number;
}

export interface StreamOptions extends Addressed {
  /** Until the head of the reply is there. The body may take any time; the signal ends it. */
  readonly headMs: number;
}

export interface Failure {
  readonly outcome: "refused" | "unknown";
  readonly reason: string;
  /** Why the server at this address does not accept this node, or is not the node that is meant. */
  readonly denied?: string;
  /** The deadline ended the call; the peer may still be working on it. */
  readonly late?: true;
}

export interface ReplyHead {
  readonly outcome: "reply";
  readonly status: number;
  /** With their names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
}

export type Outcome = (ReplyHead & { readonly body: string }) | Failure;

/**
 * The body is read once. It rejects when it is cut short, and makes the peer wait while the reader is slow. It holds a
 * connection until it is read to the end, left (`break`), or called off by the signal.
 */
export type StreamOutcome = (ReplyHead & { readonly body: AsyncIterable<Buffer> }) | Failure;

/** A call as its receiver sees it. */
export interface ReceivedRequest {
  /** The name of the sender where it has proved it; in memory the url from which it calls. */
  readonly from: string;
  readonly method: PeerRequest["method"];
  readonly path: string;
  /** With their names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Aborted when the caller does not wait for the reply any more. Absent where that cannot be known. */
  readonly signal?: AbortSignal;
}

export interface PeerReply {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** In place of a body: pulled as fast as the caller reads, and left (`return`) when it reads no more. */
  readonly stream?: AsyncIterable<Buffer>;
}

/** A handler that rejects counts as a peer that died while it handled the request. */
export type PeerHandler = (request: ReceivedRequest) => Promise<PeerReply>;
