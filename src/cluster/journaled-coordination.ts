/** Tells the journal of nodes that come, drain and go: of its own life each node, of deaths the leader that found them. */

import type { Coordination, Membership } from "../coordination/coordination.ts";
import type { NodeIdentity, NodeStatus } from "../core/node.ts";
import type { LeaderRole } from "../core/term.ts";
import { staleWrite } from "./journaled-store.ts";
import type { Note } from "./journal.ts";
import type { Refusal } from "./refused-writes.ts";

export interface JournaledCoordinationOptions {
  readonly coordination: Coordination;
  readonly identity: NodeIdentity;
  readonly version: string;
  readonly journal: { note(note: Note): void };
  readonly refused: (refusal: Refusal) => void;
}

export class JournaledCoordination implements Coordination {
  readonly kind: string;
  readonly membership: Membership;
  readonly #o: JournaledCoordinationOptions;
  /** As the others see us; null while they do not. */
  #status: NodeStatus | null = null;

  constructor(options: JournaledCoordinationOptions) {
    this.#o = options;
    this.kind = options.coordination.kind;
    this.membership = this.#told(options.coordination.membership);
  }

  lock(role: LeaderRole) {
    return this.#o.coordination.lock(role);
  }

  notes(): readonly string[] {
    return this.#o.coordination.notes();
  }

  start(): Promise<void> {
    return this.#o.coordination.start();
  }

  async stop(): Promise<void> {
    await this.#o.coordination.stop();
    if (this.#status !== null) this.#note("node.left", {});
    this.#status = null;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  #told(membership: Membership): Membership {
    const { journal } = this.#o;
    return {
      nodes: () => membership.nodes(),
      ask: (node, request) => membership.ask(node, request),
      requests: (signal) => membership.requests(signal),
      setStatus: async (status) => {
        await membership.setStatus(status);
        this.#follow(status);
      },
      ...(membership.remove && {
        remove: async (node) => {
          const removed = await membership.remove!(node);
          const detail = { reason: "it was removed by hand" };
          if (removed) journal.note({ kind: "node.left", subject: node, detail });
          return removed;
        },
      }),
      displaced: () => membership.displaced(),
      findDead: (fence) => this.#fenced(membership.findDead(fence)),
      markRecovered: async (nodes, fence) => {
        await this.#fenced(membership.markRecovered(nodes, fence));
        for (const { name, incarnation } of nodes) {
          const detail = { incarnation, leader_epoch: fence.epoch };
          journal.note({ kind: "node.dead", subject: name, detail });
        }
      },
    };
  }

  #follow(status: NodeStatus): void {
    const before = this.#status;
    this.#status = status;
    if (status === before) return;
    if (status === "draining") this.#note("node.draining", {});
    else if (status === "active" && before === "draining") this.#note("node.resumed", {});
    else if (status === "active") this.#note("node.joined", { version: this.#o.version });
  }

  #note(kind: Note["kind"], detail: Record<string, unknown>): void {
    const { journal, identity } = this.#o;
    const { name, incarnation } = identity;
    journal.note({ kind, subject: name, detail: { incarnation, ...detail } });
  }

  async #fenced<Answer>(asked: Promise<Answer>): Promise<Answer> {
    try {
      return await asked;
    } catch (error) {
      const refusal = staleWrite("the word that nodes have died", error);
      if (refusal) this.#o.refused(refusal);
      throw error;
    }
  }
}
