/** Replies that are too large for a shared connection, until the caller fetches them over a connection of its own. */

import type { NodeName } from "../../core/ids.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Random } from "../../platform/random.ts";
import type { PeerReply } from "../transport.ts";
import { MESH_PATH } from "./handshake.ts";

/** A caller fetches its reply at once; one that does not has gone. */
const KEPT_MS = 10_000;
const PATH = `${MESH_PATH}/reply/`;

interface Parked {
  readonly peer: NodeName;
  readonly reply: PeerReply;
  readonly cancel: () => void;
}

export class ParkedReplies {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #replies = new Map<string, Parked>();

  constructor(clock: Clock, random: Random) {
    this.#clock = clock;
    this.#random = random;
  }

  put(peer: NodeName, reply: PeerReply): string {
    const ticket = this.#random.uuid();
    const cancel = this.#clock.after(KEPT_MS, () => this.#replies.delete(ticket));
    this.#replies.set(ticket, { peer, reply, cancel });
    return ticket;
  }

  /** The reply that a peer fetches by this path, once; null for every other path. */
  take(peer: NodeName, path: string): PeerReply | null {
    if (!path.startsWith(PATH)) return null;
    const ticket = path.slice(PATH.length);
    const parked = this.#replies.get(ticket);
    if (parked?.peer !== peer) throw new Error(`no reply is kept for ${peer} under this ticket`);
    this.#replies.delete(ticket);
    parked.cancel();
    return parked.reply;
  }

  clear(): void {
    for (const { cancel } of this.#replies.values()) cancel();
    this.#replies.clear();
  }
}

export function ticketPath(ticket: string): string {
  return PATH + ticket;
}
