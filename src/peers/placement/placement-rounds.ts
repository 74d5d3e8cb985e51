/**
 * The source of round-robin positions. `per-node`: each node counts by itself. `global`: all nodes share one sequence,
 * whose positions the leader assigns: many at a time to a node with many waiting callers, else one by one, so that the
 * order is exact where callers can see it. Without a leader, or while it is slow, a node continues by itself.
 */

import type { Leadership } from "../../leadership/coordination.ts";
import type { NodeInfo } from "../../core/node.ts";
import { BatonError } from "../../core/errors.ts";
import type { Platform } from "../../platform/platform.ts";
import type { PeerHandler } from "../../transport/transport.ts";
import { servePeers, type PeerClient } from "../rpc/peer-rpc.ts";
import type { RoundRobinPosition } from "./round-robin-position.ts";

export type PlacementStrategy = "global" | "per-node" | "local";

/** A job waits so long for the leader's word, and then goes by our own count. */
const ASK_MS = 300;
/** After a failure the leader is not asked for so long: jobs must not wait one after the other for a node that is gone. */
const REST_MS = 1_000;
const BATCH_MAX = 256;
/** Positions that were kept for longer are let go: those around them have been used by others. */
const FRESH_MS = 500;

interface Stock {
  readonly epoch: number;
  next: number;
  readonly end: number;
  readonly freshUntil: number;
}

interface RoundsOptions extends Pick<Platform, "identity" | "clock" | "log"> {
  readonly strategy: PlacementStrategy;
  readonly position: RoundRobinPosition;
  readonly leadership: Pick<Leadership, "current" | "held">;
  readonly client: PeerClient;
  readonly nodes: () => readonly NodeInfo[];
}

export class PlacementRounds {
  readonly handle: PeerHandler;
  readonly #o: RoundsOptions;
  #stock: Stock | null = null;
  #coming: Promise<void> | null = null;
  /** How many callers have waited for the last answer: more than one, and more are asked for. */
  #waited = 0;
  #batch = 1;
  #restUntil = -Infinity;

  constructor(options: RoundsOptions) {
    const { identity, leadership, position } = options;
    this.#o = options;
    this.handle = servePeers(options, {
      positions: ({ count }) => {
        const term = leadership.held();
        if (term) return { index: position.next(count), count, epoch: term.epoch };
        const leader = leadership.current()?.leader ?? null;
        throw new BatonError("NOT_LEADER", `${identity.name} does not lead`, { leader_id: leader });
      },
    });
  }

  next(): number | Promise<number> {
    const { strategy, position, leadership } = this.#o;
    if (strategy !== "global" || leadership.held()) return position.next();
    const stocked = this.#take();
    if (stocked !== null) return stocked;
    const coming = this.#fetch();
    if (coming === null) return position.next();
    this.#waited++;
    // A caller that came meanwhile may find nothing left, and asks again: each answer serves at least one.
    return coming.then(() => this.#take() ?? this.next());
  }

  #take(): number | null {
    const stock = this.#stock;
    // One of another leader is not used: its successor counts from elsewhere.
    const usable =
      stock &&
      stock.next < stock.end &&
      stock.epoch === this.#o.leadership.current()?.epoch &&
      this.#o.clock.monotonic() < stock.freshUntil;
    return usable ? stock.next++ : null;
  }

  /** Null when there is no leader to ask. One request at a time, for all that wait. */
  #fetch(): Promise<void> | null {
    if (this.#coming) return this.#coming;
    const term = this.#o.leadership.current();
    const leader = this.#o.nodes().find((node) => node.name === term?.leader);
    if (!leader?.alive || this.#o.clock.monotonic() < this.#restUntil) return null;
    this.#coming = this.#ask(leader).finally(() => (this.#coming = null));
    return this.#coming;
  }

  async #ask(leader: NodeInfo): Promise<void> {
    const count = this.#wanted();
    const asked = await this.#o.client.ask(leader, "positions", { count }, { deadlineMs: ASK_MS });
    if (asked.got !== "answer") {
      this.#restUntil = this.#o.clock.monotonic() + REST_MS;
      return;
    }
    const given = asked.value;
    const end = given.index + given.count;
    this.#o.position.follow(end);
    this.#batch = count;
    const freshUntil = this.#o.clock.monotonic() + FRESH_MS;
    this.#stock = { epoch: given.epoch, next: given.index, end, freshUntil };
  }

  /** Up at once and down by halves: callers who come one by one are soon given single positions again. */
  #wanted(): number {
    const waited = this.#waited;
    this.#waited = 0;
    if (waited > 1) return Math.min(Math.max(waited, this.#batch * 2), BATCH_MAX);
    return Math.max(Math.floor(this.#batch / 2), 1);
  }
}
