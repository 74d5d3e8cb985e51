/** Whether a request gets in at all, before it is asked where it belongs (decide.ts). */

import type { InFlight } from "../cluster/in-flight.ts";
import { BatonError } from "../core/errors.ts";
import { acceptsWork, hasRole } from "../core/node.ts";
import type { Operation } from "./operation.ts";
import type { NodeServices } from "./services.ts";

export class Admission {
  readonly #services: NodeServices;
  readonly #inFlight: Pick<InFlight, "enter"> | null;

  constructor(services: NodeServices, inFlight: Pick<InFlight, "enter"> | null) {
    this.#services = services;
    this.#inFlight = inFlight;
  }

  /** Throws the refusal, or gives the way out, to be taken when the request has been carried out. */
  enter(operation: Pick<Operation, "tag" | "mutates">): () => void {
    // Whoever looks after the cluster gets through to every node, before it has formed and while it drains: a drained node
    // could not be resumed otherwise. Wishes are passed on at once, so nothing is lost by not waiting for them.
    if (operation.tag === "node" || operation.tag === "cluster") return nothing;
    const { roles, health } = this.#services;
    if (!roles.has("gateway")) throw this.#notAGateway();
    if (!operation.mutates) return nothing;
    if (health.forming !== null) {
      throw new BatonError(
        "CLUSTER_FORMING",
        `the cluster is still forming (${health.forming}) and takes no changes yet; try again in a moment`,
      );
    }
    if (this.#inFlight === null) return nothing;
    const leave = this.#inFlight.enter();
    if (leave === null) {
      throw new BatonError("DRAINING", "this node is draining and takes no more changes; try another node");
    }
    return leave;
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

function nothing(): void {}
