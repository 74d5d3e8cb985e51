/** Opens a connection to a peer, or reports why that failed. */

import type { IncomingMessage } from "node:http";
import { WebSocket } from "ws";
import type { NodeIdentity } from "../../core/node.ts";
import type { Clock } from "../../platform/clock.ts";
import type { ClusterKeys, Claims } from "../signing/signing.ts";
import { isRefusal } from "../call-outcome.ts";
import { FRAME_BYTES_MAX } from "./frame.ts";
import { checkWelcome, greet, MESH_PATH, REFUSAL_HEADER, type SessionKeys } from "./handshake.ts";

/**
 * - `refusing`: the machine reports that no process listens there.
 * - `silent`: no answer, or one that broke off, which proves nothing.
 * - `denied`: the server did not accept this node, or did not prove that it is the node that is meant. This includes
 *   every answer other than the switch to the mesh: nothing is ever sent to a server that has not proved its name.
 */
export type Dialled =
  | {
      readonly state: "open";
      readonly socket: WebSocket;
      readonly peer: NodeIdentity;
      readonly session: SessionKeys;
    }
  | { readonly state: "refusing" | "silent" | "denied"; readonly reason: string };

export function dial(
  clock: Clock,
  url: string,
  keys: ClusterKeys,
  claims: Claims,
  connectMs: number,
  signal: AbortSignal,
): Promise<Dialled> {
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
    fail(isRefusal(error) ? "refusing" : "silent", reason);
  });
  socket.on("unexpected-response", (_request, response) => {
    response.resume();
    fail("denied", whyDenied(response));
  });
  socket.on("upgrade", (response) => (answer = response));
  socket.on("open", () => {
    const welcomed = checkWelcome(keys, claims, answer?.headers ?? {});
    if ("refused" in welcomed) return fail("denied", welcomed.refused);
    settled = true;
    // Nothing can come before the connection listens: the server waits for our first frame.
    resolve({ state: "open", socket, ...welcomed });
  });
  return promise.finally(() => {
    giveUp();
    signal.removeEventListener("abort", abort);
  });
}

function whyDenied({ statusCode = 0, headers }: IncomingMessage): string {
  const why = headers[REFUSAL_HEADER];
  if (typeof why === "string") return why;
  return `it answered ${statusCode} instead of switching to the mesh; a proxy between nodes must pass WebSockets to ${MESH_PATH}`;
}
