/** Whether a request gets in at all, before it is asked where it belongs (decide.ts). */

import type { InFlight } from "../cluster/in-flight.ts";
import { BatonError } from "../core/errors.ts";
import { acceptsWork, hasRole } from "../core/node.ts";
import type { Inbound } from "../transport/hop.ts";
import type { Operation } from "./operation.ts";
import type { NodeServices } from "./node-services.ts";

export class Admission {
  readonly #services: NodeServices;
  readonly #inFlight: Pick<InFlight, "enter"> | null;

  constructor(services: NodeServices, inFlight: Pick<InFlight, "enter"> | null) {
    this.#services = services;
    this.#inFlight = inFlight;
  }

  /** Throws when nobody of this kind is served here, wherever the request belongs. What a peer passes on was let in there. */
  check(operation: Pick<Operation, "tag" | "mutates">, inbound: Inbound): void {
    if (isUpkeep(operation) || isControllers(operation) || inbound.from !== null) return;
    const { roles, health } = this.#services;
    if (!roles.has("gateway")) throw this.#notAGateway();
    if (operation.mutates && health.forming !== null) {
      throw new BatonError(
        "CLUSTER_FORMING",
        `the cluster is still forming (${health.forming}) and takes no changes yet; try again in a moment`,
      );
    }
  }

  /** For what is done here. Throws the refusal, or gives the way out, to be taken when it has been carried out. */
  enter(operation: Pick<Operation, "tag" | "mutates" | "target">): () => void {
    if (isUpkeep(operation) || !operation.mutates || this.#inFlight === null) return nothing;
    const leave = this.#inFlight.enter();
    if (leave !== null) return leave;
    if (isControllers(operation)) return nothing;
    // A job that is kept here alone can be cancelled nowhere else, and one that is stuck would hold up the drain.
    if (this.#services.peers && typeof operation.target === "function") return nothing;
    throw new BatonError("DRAINING", "this node is draining and takes no more changes; try another node");
  }

  /** For what another node does: waited for like the rest, and not refused by a node that drains. */
  pass(operation: Pick<Operation, "tag" | "mutates">): () => void {
    return (operation.mutates && this.#inFlight?.enter()) || nothing;
  }

  #notAGateway(): BatonError {
    const gateways = this.#services.cluster
      .nodes()
      .filter((node) => hasRole(node, "gateway") && acceptsWork(node) && node.alive)
      .flatMap((node) => node.url ?? []);
    const advice =
      gateways.length === 0
        ? "none is known; start a node with the role gateway"
        : `send the request to ${gateways.join(" or ")}`;
    return new BatonError("NOT_A_GATEWAY", `this node does not serve callers: ${advice}`, { gateways });
  }
}

/**
 * Whoever looks after the cluster gets through to every node, before it has formed and while it drains: a drained node could not
 * be resumed otherwise. Wishes are passed on at once, so nothing is lost by not waiting for them.
 */
function isUpkeep({ tag }: Pick<Operation, "tag">): boolean {
  return tag === "node" || tag === "cluster" || tag === "access";
}

/** Whoever leads is the controller, gateway or not; it says itself what it takes while it drains. */
function isControllers({ tag }: Pick<Operation, "tag">): boolean {
  return tag === "controller";
}

function nothing(): void {}
