/** Calls to the other members. What a call reveals about the peer goes into the state. */

import type { NodeName } from "../../core/ids.ts";
import type { Transport } from "../../transport/transport.ts";
import { removal } from "../rpc/bully-messages.ts";
import { PeerClient, type PeerAnswer } from "../rpc/peer-rpc.ts";
import type { PeerRoute, ReplyOf, RequestOf } from "../rpc/peer-routes.ts";
import type { PeerState } from "./peer-state.ts";

export class PeerCalls {
  readonly #state: PeerState;
  readonly #client: PeerClient;
  readonly #garbled = new Set<NodeName>();
  /** Why a peer rejects the calls of this node: usually another secret. */
  readonly denials = new Map<NodeName, string>();

  constructor(state: PeerState, call: Transport["call"]) {
    this.#state = state;
    this.#client = new PeerClient(call);
  }

  /** Asks a member; a node that is not a member yet, or not any more, at this address. */
  async ask<Route extends PeerRoute>(
    peer: NodeName,
    route: Route,
    request: RequestOf<Route>,
    deadlineMs: number,
    address = this.#state.peers.address(peer),
  ): Promise<PeerAnswer<ReplyOf<Route>>> {
    const answer = await this.#client.ask({ name: peer, url: address }, route, request, { deadlineMs });
    if (address !== null) this.#note(peer, answer);
    return answer;
  }

  /** Asks a node that is no member, and whose name may not be known yet. Nothing is concluded from its answer. */
  askAt<Route extends PeerRoute>(
    url: string,
    route: Route,
    request: RequestOf<Route>,
    deadlineMs: number,
    name?: NodeName,
  ): Promise<PeerAnswer<ReplyOf<Route>>> {
    return this.#client.ask({ url, ...(name && { name }) }, route, request, { deadlineMs });
  }

  #note(peer: NodeName, answer: PeerAnswer<unknown>): void {
    const { presences, events, log } = this.#state;
    if (answer.got === "unknown" && !answer.error) return;
    const error = answer.got === "unknown" ? answer.error! : null;
    const denied = answer.got === "refused" ? answer.denied : null;
    this.#noteDenial(peer, denied ?? (error?.status === 401 ? error.message : null));
    if (answer.got === "refused") events.emit("unreachable", peer);
    if (answer.got === "answer") {
      this.#garbled.delete(peer);
      if (answer.node?.name === peer) presences.answered(answer.node);
    }
    const gone = error && removal.safeParse(error.details);
    if (gone?.success) this.#state.hearRemoval(gone.data.removed, gone.data.peers);
    if (error?.code === "BAD_PEER_REPLY" && !this.#garbled.has(peer)) {
      this.#garbled.add(peer);
      log.warn({ peer, reason: error.message }, "a peer's answer makes no sense");
    }
  }

  /** Logged once for each reason. */
  #noteDenial(peer: NodeName, reason: string | null): void {
    if (reason === null) this.denials.delete(peer);
    else if (this.denials.get(peer) !== reason) {
      this.denials.set(peer, reason);
      this.#state.log.warn({ peer, reason }, "a peer does not take the calls of this node");
    }
  }
}
