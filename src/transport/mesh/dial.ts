/** Opens a connection to a peer, or reports why that failed. */

import type { IncomingMessage } from "node:http";
import { WebSocket } from "ws";
import type { NodeIdentity } from "../../core/node.ts";
import type { Clock } from "../../platform/clock.ts";
import type { ClusterKeys } from "../signing/cluster-keys.ts";
import type { Claims } from "../signing/signing.ts";
import { FRAME_BYTES_MAX } from "./frame.ts";
import { checkWelcome, greet, MESH_PATH, REFUSAL_HEADER } from "./handshake.ts";
import type { SessionKeys } from "./handshake.ts";

/**
 * - `refusing`: the machine says that nobody listens there.
 * - `silent`: nobody says anything, which proves nothing.
 * - `denied`: a node answered and did not believe us, or we not it.
 * - `plain`: something answered that has no mesh: an older version, or a proxy that passes no WebSockets.
 * - `cut`: the connection was there and broke off before the answer.
 */
export type Dialled =
  | {
      readonly state: "open";
      readonly socket: WebSocket;
      readonly peer: NodeIdentity;
      readonly session: SessionKeys;
    }
  | {
      readonly state: "refusing" | "silent" | "denied" | "plain" | "cut";
      readonly reason: string;
    };

export interface DialOptions {
  readonly url: string;
  readonly keys: ClusterKeys;
  readonly claims: Claims;
  readonly clock: Clock;
  readonly connectMs: number;
  readonly signal: AbortSignal;
}

export function dial({ url, keys, claims, clock, connectMs, signal }: DialOptions): Promise<Dialled> {
  const { promise, resolve } = Promise.withResolvers<Dialled>();
  const socket = new WebSocket(`${url}${MESH_PATH}`, {
    headers: greet(keys, claims),
    perMessageDeflate: false,
    maxPayload: FRAME_BYTES_MAX,
    followRedirects: false,
    // Masks keep web pages from writing bytes of their choice past a proxy; here nothing but sealed frames is written, and a mask
    // of zeros saves going through every byte on both sides.
    generateMask: (mask) => void mask.fill(0),
  });
  let connected = false;
  let answer: IncomingMessage | null = null;
  let settled = false;
  const fail = (state: Exclude<Dialled["state"], "open">, reason: string): void => {
    if (settled) return;
    settled = true;
    resolve({ state, reason });
    socket.terminate();
  };
  const abort = (): void => fail("silent", "the transport was stopped");
  const giveUp = clock.after(connectMs, () => fail("silent", `no connection within ${connectMs} ms`));
  signal.addEventListener("abort", abort, { once: true });
  // Also after it was given up: without a listener an error would end the process.
  socket.on("error", (error) => {
    const { code, message } = error as NodeJS.ErrnoException;
    const reason = code && !message.includes(code) ? `${code}: ${message}` : message || String(code);
    fail(stateOf(error, connected), reason);
  });
  socket.on("unexpected-response", (_request, response) => {
    response.resume();
    fail(...judge(response));
  });
  socket.on("upgrade", (response) => {
    connected = true;
    answer = response;
  });
  socket.on("open", () => {
    const welcomed = checkWelcome(keys, claims, answer?.headers ?? {});
    if ("refused" in welcomed) return fail(welcomed.mesh ? "denied" : "plain", welcomed.refused);
    settled = true;
    // Nothing can come before the connection listens: the server waits for our first frame.
    resolve({ state: "open", socket, ...welcomed });
  });
  return promise.finally(() => {
    giveUp();
    signal.removeEventListener("abort", abort);
  });
}

function judge(response: IncomingMessage): [Exclude<Dialled["state"], "open">, string] {
  const { statusCode = 0, headers } = response;
  const why = headers[REFUSAL_HEADER];
  if (typeof why === "string") return ["denied", why];
  return ["plain", `it answered ${statusCode} instead of switching to the mesh`];
}

/** Of a name with several addresses every one has to refuse: the process may listen on any of them. */
function stateOf(error: Error, connected: boolean): "refusing" | "silent" | "cut" {
  const each = error instanceof AggregateError ? error.errors : [error];
  if (each.every((one) => (one as NodeJS.ErrnoException).code === "ECONNREFUSED")) return "refusing";
  const { syscall } = error as NodeJS.ErrnoException;
  return connected ||
    (syscall !== "connect" && syscall !== "getaddrinfo" && !(error instanceof AggregateError))
    ? "cut"
    : "silent";
}
