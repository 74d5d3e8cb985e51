/**
 * Checks whether the leader's process still runs, so that its death is noticed before the end of its lease. A broken
 * connection, or a call that did not arrive, is a reason to check; an address that refuses connections is evidence.
 * Evidence only frees this node's own vote: an election still takes a majority.
 */

import { connect } from "node:net";
import type { HeldTerm } from "../../../core/leadership/vote-rules.ts";
import type { NodeName } from "../../../core/ids.ts";
import type { NodeIdentity } from "../../../core/node.ts";
import type { Clock } from "../../../platform/clock.ts";
import { isRefusal } from "../../../transport/call-outcome.ts";
import type { Heartbeats } from "../heartbeats.ts";
import type { PeerState } from "../peer-state.ts";

/** Yields each time that the connection to this peer breaks. */
export type WatchPeer = (address: string, signal: AbortSignal, name: NodeName) => AsyncIterable<unknown>;

/** `refusing`: the machine itself reports that no process listens there. `silent`: no answer, which proves nothing. */
export type Probe = (address: string, deadlineMs: number) => Promise<"listening" | "refusing" | "silent">;

/** A machine refuses within a round trip. Longer, and a voter answers a candidate too late. */
const PROBE_MS = 200;
/** A process that dies may take its connections down a moment before its listener. */
const CHECK_AGAIN_MS = 20;
const CHECKS = 3;

export class LeaderWatch {
  readonly #state: PeerState;
  readonly #heartbeats: Heartbeats;
  readonly #probe: Probe;
  readonly #watchPeer: WatchPeer;
  #watching: { readonly term: HeldTerm; readonly over: AbortController } | null = null;
  readonly #checks = new Map<NodeName, Promise<void>>();

  constructor(state: PeerState, heartbeats: Heartbeats, probe: Probe, watchPeer: WatchPeer) {
    this.#state = state;
    this.#heartbeats = heartbeats;
    this.#probe = probe;
    this.#watchPeer = watchPeer;
    for (const change of ["evidence", "peers", "leader"] as const)
      state.events.on(change, () => this.#follow());
    state.events.on("unreachable", (peer) => this.#checkPeer(peer));
  }

  stop(): void {
    this.#watching?.over.abort();
    this.#watching = null;
  }

  /** Checks whether this incarnation still runs; concurrent calls share one check. */
  check(node: NodeIdentity): Promise<void> {
    const { peers, identity } = this.#state;
    const address = peers.address(node.name);
    if (address === null || node.name === identity.name) return Promise.resolve();
    const running = this.#checks.get(node.name);
    if (running) return running;
    const check = this.#check(node, address).finally(() => this.#checks.delete(node.name));
    this.#checks.set(node.name, check);
    return check;
  }

  async #check(node: NodeIdentity, address: string): Promise<void> {
    const found = await this.#probe(address, PROBE_MS);
    if (found === "refusing") this.#state.presences.refuses(node);
    // Its answer shows which incarnation it is.
    if (found === "listening") await this.#heartbeats.ping(node.name);
  }

  #checkPeer(peer: NodeName): void {
    const term = this.#state.leader.sighting()?.term;
    const node = this.#state.presences.get(peer)?.node ?? (term?.name === peer ? term : null);
    if (node) void this.check(node);
  }

  #follow(): void {
    const { leader, peers, identity } = this.#state;
    const term = leader.sighting()?.term ?? null;
    const before = this.#watching;
    if (before && term && before.term.incarnation === term.incarnation) return;
    before?.over.abort();
    this.#watching = null;
    const address = term && peers.address(term.name);
    if (!term || !address || term.name === identity.name) return;
    const over = new AbortController();
    this.#watching = { term, over };
    void this.#watch(term, address, over.signal);
  }

  async #watch(term: HeldTerm, address: string, signal: AbortSignal): Promise<void> {
    const { clock, presences, log } = this.#state;
    try {
      for await (const _ of this.#watchPeer(address, signal, term.name)) {
        for (let checks = 0; checks < CHECKS && !signal.aborted; checks++) {
          await this.check(term);
          if (presences.gone(term)) break;
          await clock.sleep(CHECK_AGAIN_MS, signal);
        }
        if (signal.aborted) return;
      }
    } catch (error) {
      if (!signal.aborted)
        log.warn({ err: error }, "the leader's connection is not watched; heartbeats go on");
    }
  }
}

export function tcpProbe(clock: Clock): Probe {
  return (address, deadlineMs) => {
    if (!URL.canParse(address)) return Promise.resolve("silent");
    const { hostname, port, protocol } = new URL(address);
    const { promise, resolve } = Promise.withResolvers<"listening" | "refusing" | "silent">();
    const socket = connect({
      host: hostname.replace(/^\[|\]$/g, ""),
      port: Number(port) || (protocol === "https:" ? 443 : 80),
    });
    const callOff = clock.after(deadlineMs, () => resolve("silent"));
    socket.once("connect", () => resolve("listening"));
    socket.once("error", (error) => resolve(isRefusal(error) ? "refusing" : "silent"));
    return promise.finally(() => {
      callOff();
      socket.destroy();
    });
  };
}
