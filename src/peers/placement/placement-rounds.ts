/**
 * The source of round-robin positions. `per-node`: each node counts by itself. `global`: all nodes share one sequence,
 * whose positions the leader assigns. A node with many waiting callers gets many positions at a time; a node that gets
 * one job after the other gets one position each time, so that the order is exact where callers can see it. Without a
 * leader, or while it is slow, a node continues by itself: a job does not wait for its position.
 */

import type { Leadership } from "../../leadership/coordination.ts";
import type { NodeInfo } from "../../core/node.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Outcome, PeerReply, PeerRequest, ReceivedRequest } from "../../transport/transport.ts";
import type { RoundRobinPosition } from "./round-robin-position.ts";

export type PlacementStrategy = "global" | "per-node" | "local";

export interface PlacementRoundsOptions {
  readonly strategy: PlacementStrategy;
  readonly position: RoundRobinPosition;
  readonly leadership: Pick<Leadership, "current" | "held">;
  readonly nodes: () => readonly NodeInfo[];
  readonly call: (node: NodeInfo, request: PeerRequest, deadlineMs: number) => Promise<Outcome>;
  readonly clock: Clock;
}

export const POSITIONS_PATH = "/peer/placement/next";
/** A job waits so long for the leader's word, and then goes by our own count. */
const ASK_MS = 300;
/** After a failure the leader is not asked for so long, so that jobs do not wait one after the other for a node that is gone. */
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

export class PlacementRounds {
  readonly #o: PlacementRoundsOptions;
  #stock: Stock | null = null;
  #reserve: Stock | null = null;
  #coming: Promise<void> | null = null;
  /** How many callers have waited for the last answer: more than one, and more are asked for. */
  #waited = 0;
  #batch = 1;
  #restUntil = -Infinity;

  constructor(options: PlacementRoundsOptions) {
    this.#o = options;
  }

  next(): number | Promise<number> {
    const { strategy, position, leadership } = this.#o;
    if (strategy !== "global" || leadership.held()) return position.next();
    const stocked = this.#take();
    if (stocked !== null) {
      if (this.#runsLow()) void this.#fetch();
      return stocked;
    }
    const coming = this.#fetch();
    if (coming === null) return position.next();
    this.#waited++;
    // A caller that came meanwhile may find nothing left, and asks again: each answer serves at least one.
    return coming.then(() => this.#take() ?? this.next());
  }

  /** Gives out positions to the others. */
  async handle(request: ReceivedRequest): Promise<PeerReply> {
    const { leadership, position } = this.#o;
    const term = leadership.held();
    if (!term) {
      const leader = leadership.current()?.leader ?? null;
      return { status: 409, body: JSON.stringify({ error: "NOT_LEADER", leader_id: leader }) };
    }
    const asked = Number(new URLSearchParams(request.path.split("?")[1] ?? "").get("count") ?? 1);
    const count = Number.isSafeInteger(asked) ? Math.min(Math.max(asked, 1), BATCH_MAX) : 1;
    return {
      status: 200,
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ index: position.next(count), count, epoch: term.epoch }),
    };
  }

  #runsLow(): boolean {
    const stock = this.#stock!;
    return this.#reserve === null && stock.end - stock.next <= this.#batch / 2;
  }

  #take(): number | null {
    if (this.#stock && this.#stock.next >= this.#stock.end) {
      this.#stock = this.#reserve;
      this.#reserve = null;
    }
    const stock = this.#stock;
    if (!stock) return null;
    const { clock, leadership } = this.#o;
    // Of another leader: its successor counts from elsewhere.
    if (stock.epoch !== leadership.current()?.epoch || clock.monotonic() >= stock.freshUntil) {
      this.#stock = this.#reserve = null;
      return null;
    }
    return stock.next++;
  }

  /** Null when there is no leader to ask. One request at a time, for all that wait. */
  #fetch(): Promise<void> | null {
    if (this.#coming) return this.#coming;
    const { leadership, nodes, clock } = this.#o;
    const term = leadership.current();
    const leader = nodes().find((node) => node.name === term?.leader);
    if (!leader?.alive || clock.monotonic() < this.#restUntil) return null;
    this.#coming = this.#ask(leader).finally(() => (this.#coming = null));
    return this.#coming;
  }

  async #ask(leader: NodeInfo): Promise<void> {
    const { call, clock, position } = this.#o;
    const count = this.#wanted();
    const path = `${POSITIONS_PATH}?count=${count}`;
    const outcome = await call(leader, { method: "POST", path }, ASK_MS);
    const given = outcome.outcome === "reply" && outcome.status === 200 ? parse(outcome.body) : null;
    if (!given) {
      this.#restUntil = clock.monotonic() + REST_MS;
      return;
    }
    const end = given.index + given.count;
    position.follow(end);
    this.#batch = count;
    const freshUntil = clock.monotonic() + FRESH_MS;
    const stock = { epoch: given.epoch, next: given.index, end, freshUntil };
    if (this.#stock?.epoch === stock.epoch && this.#stock.next < this.#stock.end) this.#reserve = stock;
    else this.#stock = stock;
  }

  /** Up at once and down by halves: callers who come one by one are soon given single positions again. */
  #wanted(): number {
    const waited = this.#waited;
    this.#waited = 0;
    if (waited > 1) return Math.min(Math.max(waited, this.#batch * 2), BATCH_MAX);
    return Math.max(Math.floor(this.#batch / 2), 1);
  }
}

function parse(body: string): { index: number; count: number; epoch: number } | null {
  try {
    const { index, count, epoch } = JSON.parse(body) as Record<string, unknown>;
    const whole = [index, count, epoch].every(
      (value) => Number.isSafeInteger(value) && (value as number) >= 0,
    );
    return whole ? { index: index as number, count: count as number, epoch: epoch as number } : null;
  } catch {
    return null;
  }
}
