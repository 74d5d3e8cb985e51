/**
 * Looks whether the leader's process is still there, so that a death is noticed in milliseconds and not by the end of a lease.
 *
 * A broken connection, or a call that did not arrive, is a reason to look; that its address refuses connections is evidence.
 * Evidence only lets this node's own vote go elsewhere: a majority has to have it.
 */

import type { HeldTerm } from "../../core/ballot.ts";
import type { NodeName } from "../../core/ids.ts";
import type { NodeIdentity } from "../../core/node.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Log } from "../../platform/log.ts";
import type { Transport } from "../../transport/transport.ts";
import type { Evidence } from "./evidence.ts";
import type { LeaderView } from "./leader-view.ts";
import { PATHS } from "./messages.ts";
import type { PeerBook } from "./peer-book.ts";
import type { Probe } from "./probe.ts";
import type { Roster } from "./roster.ts";

/** Tells each time that the connection to this peer breaks. */
export type WatchPeer = (address: string, signal: AbortSignal, name: NodeName) => AsyncIterable<unknown>;

export interface LeaderWatchOptions {
  readonly identity: NodeIdentity;
  readonly clock: Clock;
  readonly log: Log;
  readonly roster: Roster;
  readonly book: PeerBook;
  readonly view: LeaderView;
  readonly evidence: Evidence;
  readonly probe: Probe;
  readonly watchPeer: WatchPeer;
  /** Learns from the peer itself which life it is in. */
  readonly greet: (peer: NodeName) => Promise<void>;
}

/** A machine refuses within a round trip. Longer, and a voter answers a candidate too late. */
const PROBE_MS = 200;
/** A process that dies may take its connections down a moment before its listener. */
const LOOK_AGAIN_MS = 20;
const LOOKS = 3;

export class LeaderWatch {
  readonly #o: LeaderWatchOptions;
  #watching: { readonly term: HeldTerm; readonly over: AbortController } | null = null;
  readonly #probing = new Map<NodeName, Promise<void>>();

  constructor(options: LeaderWatchOptions) {
    this.#o = options;
  }

  /** Follows whoever leads now. */
  follow(): void {
    const term = this.#o.view.sighting()?.term ?? null;
    const before = this.#watching;
    if (before && term && before.term.incarnation === term.incarnation) return;
    before?.over.abort();
    this.#watching = null;
    const address = term && this.#o.roster.address(term.name);
    if (!term || !address || term.name === this.#o.identity.name) return;
    const over = new AbortController();
    this.#watching = { term, over };
    void this.#watch(term, address, over.signal);
  }

  stop(): void {
    this.#watching?.over.abort();
    this.#watching = null;
  }

  /** Looks whether this life is still there; several at once share one look. */
  check(life: NodeIdentity): Promise<void> {
    const { roster, identity } = this.#o;
    const address = roster.address(life.name);
    if (address === null || life.name === identity.name) return Promise.resolve();
    const running = this.#probing.get(life.name);
    if (running) return running;
    const look = this.#look(life, address).finally(() => this.#probing.delete(life.name));
    this.#probing.set(life.name, look);
    return look;
  }

  /** A call to this peer did not arrive. */
  refused(peer: NodeName): void {
    const life = this.#o.book.entry(peer)?.presence.node ?? this.#lifeOfLeader(peer);
    if (life) void this.check(life);
  }

  #lifeOfLeader(peer: NodeName): NodeIdentity | null {
    const term = this.#o.view.sighting()?.term;
    return term?.name === peer ? term : null;
  }

  async #look(life: NodeIdentity, address: string): Promise<void> {
    const { probe, evidence, greet } = this.#o;
    const found = await probe(address, PROBE_MS);
    if (found === "refusing") evidence.refuses(life);
    if (found === "listening") await greet(life.name);
  }

  async #watch(term: HeldTerm, address: string, signal: AbortSignal): Promise<void> {
    const { watchPeer, clock, evidence, log } = this.#o;
    try {
      for await (const _ of watchPeer(address, signal, term.name)) {
        for (let look = 0; look < LOOKS && !signal.aborted; look++) {
          await this.check(term);
          if (evidence.gone(term)) break;
          await clock.sleep(LOOK_AGAIN_MS, signal);
        }
        if (signal.aborted) return;
      }
    } catch (error) {
      if (!signal.aborted)
        log.warn({ err: error }, "the leader's connection is not watched; heartbeats go on");
    }
  }
}

/** A held request is cheap, and its end comes as soon as the peer's process ends. */
const HOLD_MS = 20_000;
const HOLD_MARGIN_MS = 5_000;
const PAUSE_MS = 500;

/** Where the transport cannot watch a connection: one long request is kept open at the peer. */
export function watchByRequest(transport: Transport, clock: Clock): WatchPeer {
  return async function* (address, signal, name) {
    const request = { method: "GET", path: `${PATHS.heartbeat}?wait=${HOLD_MS}` } as const;
    while (!signal.aborted) {
      const options = { deadlineMs: HOLD_MS + HOLD_MARGIN_MS, to: name, signal };
      const outcome = await transport.call(address, request, options);
      if (signal.aborted) return;
      if (outcome.outcome === "reply" && outcome.status === 200) continue;
      yield "broken";
      await clock.sleep(PAUSE_MS, signal);
    }
  };
}

/** How long a request is held that asks for `ms`. */
export function holdMs(ms: number): number {
  return Number.isFinite(ms) ? Math.min(Math.max(ms, 0), HOLD_MS) : 0;
}
