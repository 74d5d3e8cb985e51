/** Calls to the other members: a checked answer, or the way in which there is none. */

import type { z } from "zod";
import type { NodeName } from "../../core/ids.ts";
import type { NodeIdentity } from "../../core/node.ts";
import type { PeerSet, RemovedLife } from "../../core/peer-set.ts";
import type { Log } from "../../platform/log.ts";
import type { CallOptions, Outcome, Transport } from "../../transport/transport.ts";
import type { Evidence } from "./evidence.ts";
import { readMessage, removedAnswer } from "./messages.ts";
import type { Roster } from "./roster.ts";

export interface PeerCallsOptions {
  readonly transport: Transport;
  readonly roster: Roster;
  readonly evidence: Evidence;
  readonly log: Log;
  /** A member says that this node is none any more. */
  readonly onRemoved: (why: RemovedLife["why"], peers: PeerSet | null) => void;
  /** A call certainly did not reach that peer: worth looking why. */
  readonly onRefused: (peer: NodeName) => void;
}

export type Asked<Answer> =
  | { readonly answer: Answer }
  /** `refused`: it never arrived; `failed`: an answer that says no; `silent`: nobody knows. */
  | { readonly none: "refused" | "failed" | "silent"; readonly status?: number; readonly body?: string };

export class PeerCalls {
  readonly #o: PeerCallsOptions;
  /** Peers whose answers we could not read, so that it is told once. */
  readonly #garbled = new Set<NodeName>();
  /** Why a peer that is there does not take what this node sends: another secret, most of the time. */
  readonly denials = new Map<NodeName, string>();

  constructor(options: PeerCallsOptions) {
    this.#o = options;
  }

  async ask<Schema extends z.ZodType<{ readonly node: NodeIdentity }>>(
    peer: NodeName,
    path: string,
    body: object,
    schema: Schema,
    options: Omit<CallOptions, "to">,
  ): Promise<Asked<z.output<Schema>>> {
    const address = this.#o.roster.address(peer);
    return address === null ? { none: "refused" } : this.askAt(peer, address, path, body, schema, options);
  }

  /** A peer that is no member yet, or none any more. */
  async askAt<Schema extends z.ZodType<{ readonly node: NodeIdentity }>>(
    peer: NodeName,
    address: string,
    path: string,
    body: object,
    schema: Schema,
    options: Omit<CallOptions, "to">,
  ): Promise<Asked<z.output<Schema>>> {
    const { evidence, onRefused } = this.#o;
    const outcome = await this.call(address, path, body, { ...options, to: peer });
    this.#noteDenial(peer, outcome);
    const asked = this.#read(peer, outcome, schema);
    if ("answer" in asked && asked.answer.node.name === peer) evidence.answered(asked.answer.node);
    else if ("none" in asked && asked.none === "refused") onRefused(peer);
    return asked;
  }

  /** To an address whose node may not be known yet. */
  async call(address: string, path: string, body: object, options: CallOptions): Promise<Outcome> {
    const headers = { "content-type": "application/json" };
    const request = { method: "POST", path, headers, body: JSON.stringify(body) } as const;
    try {
      return await this.#o.transport.call(address, request, options);
    } catch (error) {
      return { outcome: "unknown", reason: (error as Error).message };
    }
  }

  #read<Schema extends z.ZodType<{ readonly node: NodeIdentity }>>(
    peer: NodeName,
    outcome: Outcome,
    schema: Schema,
  ): Asked<z.output<Schema>> {
    if (outcome.outcome !== "reply") return { none: outcome.outcome === "refused" ? "refused" : "silent" };
    const { status, body } = outcome;
    if (status === 410) this.#hearRemoval(body);
    if (status !== 200) return { none: "failed", status, body };
    try {
      const answer = readMessage(schema, body);
      this.#garbled.delete(peer);
      return { answer };
    } catch (error) {
      if (!this.#garbled.has(peer)) this.#o.log.warn({ peer, err: error }, "a peer's answer makes no sense");
      this.#garbled.add(peer);
      return { none: "failed", status, body };
    }
  }

  /** Told once for each reason; over when the peer answers, or is not there at all. */
  #noteDenial(peer: NodeName, outcome: Outcome): void {
    if (outcome.outcome === "unknown") return;
    const reason = denialIn(outcome);
    if (reason === null) this.denials.delete(peer);
    else if (this.denials.get(peer) !== reason) {
      this.denials.set(peer, reason);
      this.#o.log.warn({ peer, reason }, "a peer does not take the calls of this node");
    }
  }

  #hearRemoval(body: string): void {
    try {
      const { removed, peers } = readMessage(removedAnswer, body);
      this.#o.onRemoved(removed, peers);
    } catch (error) {
      this.#o.log.warn({ err: error }, "a peer's answer makes no sense");
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
