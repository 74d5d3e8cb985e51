/** Where a request is answered: the one place in which the API asks `core/route.ts`. */

import { BatonError } from "../core/errors.ts";
import { parseJobId } from "../core/ids.ts";
import type { NodeName } from "../core/ids.ts";
import type { NodeInfo } from "../core/node.ts";
import { roleOf } from "../core/role.ts";
import { decide } from "../core/route.ts";
import type { Refusal, Target, View } from "../core/route.ts";
import type { NodeServices } from "./services.ts";

/**
 * Lets a request through or throws its refusal. Requests are not forwarded yet: one that belongs to another node is
 * refused with the code that tells the caller where to go.
 */
export class Gate {
  readonly #services: NodeServices;
  readonly #view: View;

  constructor(services: NodeServices) {
    this.#services = services;
    this.#view = new LiveView(services);
  }

  admit(target: Target, mutates: boolean): void {
    const decision = decide(target, mutates, this.#view);
    if (decision.do === "serve") return;
    // What only a leader carries out, anybody may write down where all nodes read the same store: the leader is told of it.
    if (target.at === "leader" && this.#view.sharedStore) return;
    if (decision.do === "refuse") throw this.#refusal(decision.code, target);
    if (target.at === "leader") throw this.#refusal("NOT_LEADER", target);
    if (target.at === "owner") throw this.#refusal("OWNER_UNREACHABLE", target);
    // Placement is a wish, not a rule: a node that cannot pass a job on keeps it, unless it is about to leave.
    if (this.#view.draining) throw this.#refusal("DRAINING", target);
  }

  #refusal(code: Refusal, target: Target): BatonError {
    switch (code) {
      case "NOT_LEADER":
        return this.#notLeader();
      case "OWNER_UNREACHABLE": {
        const owner = target.at === "owner" ? (parseJobId(target.job)?.birthplace ?? null) : null;
        return new BatonError(code, `the node that keeps this job (${owner}) cannot be reached from here`, {
          owner,
        });
      }
      case "DRAINING":
        return new BatonError(code, "this node is draining and takes no new work; try another node");
      case "LOOP":
        return new BatonError(code, "the request was passed on to a node that is not meant either");
    }
  }

  #notLeader(): BatonError {
    const { leadership, membership, identity, health } = this.#services;
    const term = leadership.current();
    const leader = membership.nodes().find((node) => node.name === term?.leader);
    return new BatonError("NOT_LEADER", "this node does not lead; send the request to the leader", {
      leader_id: term?.leader ?? null,
      leader_url: leader?.url ?? null,
      leader_epoch: term?.epoch ?? null,
      node_id: identity.name,
      role: roleOf(leadership.held(), health.draining),
    });
  }
}

/** Reads the services when asked, so that a request pays only for what its decision looks at. */
class LiveView implements View {
  readonly self: NodeName;
  readonly sharedStore: boolean;
  readonly forwarded = false;
  readonly #services: NodeServices;

  constructor(services: NodeServices) {
    this.#services = services;
    this.self = services.identity.name;
    this.sharedStore = services.guarantees.shared;
  }

  get draining(): boolean {
    return this.#services.health.draining;
  }

  get leading(): boolean {
    return this.#services.leadership.held() !== null;
  }

  get leader(): NodeName | null {
    return this.#services.leadership.current()?.leader ?? null;
  }

  get nodes(): readonly NodeInfo[] {
    const nodes = this.#services.membership.nodes();
    if (!this.draining) return nodes;
    // Membership may learn of our own drain a moment later than we do.
    return nodes.map((node) => (node.name === this.self ? { ...node, status: "draining" } : node));
  }
}
