/**
 * Calls to the other members: a checked answer, or the reason why there is none. What a call reveals about the peer (its
 * incarnation, that it was not reached, that it takes this node for removed) goes into the state.
 */

import type { z } from "zod";
import type { NodeName } from "../../core/ids.ts";
import type { NodeIdentity } from "../../core/node.ts";
import type { CallOptions, Outcome, Transport } from "../../transport/transport.ts";
import { readMessage, removedAnswer } from "./messages.ts";
import type { PeerState } from "./peer-state.ts";

export type PeerCallResult<Answer> =
  | { readonly answer: Answer }
  /** `refused`: the call never arrived; `failed`: the answer is an error; `silent`: the outcome is unknown. */
  | { readonly none: "refused" | "failed" | "silent"; readonly status?: number; readonly body?: string };

export class PeerCalls {
  readonly #state: PeerState;
  readonly #transport: Transport;
  /** Peers whose answers could not be read, so that each is logged once. */
  readonly #garbled = new Set<NodeName>();
  /** Why a peer rejects the calls of this node: usually another secret. */
  readonly denials = new Map<NodeName, string>();

  constructor(state: PeerState, transport: Transport) {
    this.#state = state;
    this.#transport = transport;
  }

  async ask<Schema extends z.ZodType<{ readonly node: NodeIdentity }>>(
    peer: NodeName,
    path: string,
    body: object,
    schema: Schema,
    options: Omit<CallOptions, "to">,
  ): Promise<PeerCallResult<z.output<Schema>>> {
    const address = this.#state.peers.address(peer);
    return address === null ? { none: "refused" } : this.askAt(peer, address, path, body, schema, options);
  }

  /** For a peer that is not a member yet, or not any more. */
  async askAt<Schema extends z.ZodType<{ readonly node: NodeIdentity }>>(
    peer: NodeName,
    address: string,
    path: string,
    body: object,
    schema: Schema,
    options: Omit<CallOptions, "to">,
  ): Promise<PeerCallResult<z.output<Schema>>> {
    const { presences, events } = this.#state;
    const outcome = await this.call(address, path, body, { ...options, to: peer });
    this.#noteDenial(peer, outcome);
    const asked = this.#read(peer, outcome, schema);
    if ("answer" in asked && asked.answer.node.name === peer) presences.answered(asked.answer.node);
    else if ("none" in asked && asked.none === "refused") events.emit("unreachable", peer);
    return asked;
  }

  /** To an address whose node may not be known yet. */
  async call(address: string, path: string, body: object, options: CallOptions): Promise<Outcome> {
    const headers = { "content-type": "application/json" };
    const request = { method: "POST", path, headers, body: JSON.stringify(body) } as const;
    try {
      return await this.#transport.call(address, request, options);
    } catch (error) {
      return { outcome: "unknown", reason: (error as Error).message };
    }
  }

  #read<Schema extends z.ZodType<{ readonly node: NodeIdentity }>>(
    peer: NodeName,
    outcome: Outcome,
    schema: Schema,
  ): PeerCallResult<z.output<Schema>> {
    if (outcome.outcome !== "reply") return { none: outcome.outcome === "refused" ? "refused" : "silent" };
    const { status, body } = outcome;
    if (status === 410) this.#hearRemoval(body);
    if (status !== 200) return { none: "failed", status, body };
    try {
      const answer = readMessage(schema, body);
      this.#garbled.delete(peer);
      return { answer };
    } catch (error) {
      if (!this.#garbled.has(peer))
        this.#state.log.warn({ peer, err: error }, "a peer's answer makes no sense");
      this.#garbled.add(peer);
      return { none: "failed", status, body };
    }
  }

  /** Logged once for each reason; cleared when the peer answers, or cannot be reached. */
  #noteDenial(peer: NodeName, outcome: Outcome): void {
    if (outcome.outcome === "unknown") return;
    const reason = denialIn(outcome);
    if (reason === null) this.denials.delete(peer);
    else if (this.denials.get(peer) !== reason) {
      this.denials.set(peer, reason);
      this.#state.log.warn({ peer, reason }, "a peer does not take the calls of this node");
    }
  }

  #hearRemoval(body: string): void {
    try {
      const { removed, peers } = readMessage(removedAnswer, body);
      this.#state.hearRemoval(removed, peers);
    } catch (error) {
      this.#state.log.warn({ err: error }, "a peer's answer makes no sense");
    }
  }
}

function denialIn(outcome: Outcome): string | null {
  if (outcome.outcome === "refused") return outcome.denied ?? null;
  return outcome.outcome === "reply" && outcome.status === 401 ? messageIn(outcome.body) : null;
}

function messageIn(body: string): string {
  try {
    const { message } = JSON.parse(body) as { message?: unknown };
    if (typeof message === "string") return message;
  } catch {
    // The status says enough.
  }
  return "it answers 401";
}
