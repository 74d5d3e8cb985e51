/** Decides where a request is answered. The rule is pure (core/route.ts); this file supplies this node's view and refusals. */

import { clusterForming } from "../controller/term-guard.ts";
import { BatonError } from "../core/errors.ts";
import { parseJobId, type NodeName } from "../core/ids.ts";
import { acceptsWork } from "../core/node.ts";
import { roleOf } from "../core/leadership/role.ts";
import { decide, type Decision, type Refusal, type Target, type View } from "../core/route.ts";
import type { Inbound } from "../transport/hop-headers.ts";
import type { NodeServices } from "./node-services.ts";
import type { Operation } from "./operation.ts";

export type RequestRouter = ReturnType<typeof requestRouter>;

export function requestRouter(services: NodeServices) {
  const fromOutside = liveView(services, false);
  const fromPeers = liveView(services, true);

  return {
    /** Throws when requests of this kind are not served here, wherever they belong. What a node forwards was admitted there. */
    admit(operation: Pick<Operation, "tag" | "mutates">, inbound: Inbound): void {
      if (isUpkeep(operation) || isController(operation) || inbound.from !== null) return;
      const { roles, health } = services;
      if (!roles.has("gateway")) throw notAGateway(services);
      if (operation.mutates && health.forming !== null) throw clusterForming(health.forming);
    },

    decide(target: Target, mutates: boolean, inbound: Inbound): Decision {
      const view = inbound.from === null ? fromOutside : fromPeers;
      const decision = decide(target, mutates, view);
      if (decision.do === "serve") return decision;
      // What only a leader carries out, any node may write down in a store that all nodes read: the leader finds it there.
      if (target.at === "leader" && view.sharedStore) return { do: "serve" };
      if (decision.do === "refuse") return decision;
      if (inbound.mayForward && services.peers) return decision;
      if (target.at === "leader") return { do: "refuse", code: "NOT_LEADER" };
      if (target.at === "owner") return { do: "refuse", code: "OWNER_UNREACHABLE" };
      // Placement is a preference: a node that cannot forward a job keeps it, unless it is about to leave.
      return view.draining ? { do: "refuse", code: "DRAINING" } : { do: "serve" };
    },

    refusal(code: Refusal, target: Target, inbound: Inbound): BatonError {
      switch (code) {
        case "NOT_LEADER":
          return notLeader(services);
        case "OWNER_UNREACHABLE":
          return notReachable(services, target, inbound);
        case "DRAINING":
          return new BatonError(code, "this node is draining and takes no new work; try another node");
        case "LOOP":
          return loop(services, target, inbound);
      }
    },
  };
}

function notAGateway({ cluster }: NodeServices): BatonError {
  const gateways = cluster
    .nodes()
    .filter((node) => node.roles.includes("gateway") && acceptsWork(node) && node.alive)
    .flatMap((node) => node.url ?? []);
  const advice =
    gateways.length === 0
      ? "none is known; start a node with the role gateway"
      : `send the request to ${gateways.join(" or ")}`;
  return new BatonError("NOT_A_GATEWAY", `this node does not serve callers: ${advice}`, { gateways });
}

function notReachable({ membership }: NodeServices, target: Target, { mayForward }: Inbound): BatonError {
  const owner = ownerOf(target);
  const node = membership.nodes().find(({ name }) => name === owner);
  if (!node) return ownerUnreachable(owner, "it is not a node of this cluster", { detail: "unknown_node" });
  if (mayForward) return ownerUnreachable(owner, "this node passes nothing on");
  return ownerUnreachable(owner, "the caller asked for no forwarding", {
    detail: "not_forwarded",
    owner_url: node.url,
  });
}

function loop({ identity, peers }: NodeServices, target: Target, inbound: Inbound): BatonError {
  return new BatonError(
    "LOOP",
    `${inbound.from} passed this on to ${identity.name}, which is not meant: their configurations differ; make the list of nodes the same on both`,
    {
      owner: ownerOf(target),
      sender: inbound.from,
      sender_config: inbound.configHash,
      node_id: identity.name,
      node_config: peers?.configHash() ?? null,
    },
  );
}

function notLeader(services: NodeServices): BatonError {
  const known = standing(services);
  const leader = services.membership.nodes().find((node) => node.name === known.leader_id);
  return new BatonError("NOT_LEADER", "this node does not lead; send the request to the leader", {
    ...known,
    leader_url: leader?.url ?? null,
    node_id: services.identity.name,
  });
}

export function standing({ leadership, health }: Pick<NodeServices, "leadership" | "health">) {
  const term = leadership.current();
  const role = roleOf(leadership.held(), health.draining);
  return { role, leader_epoch: term?.epoch ?? null, leader_id: term?.leader ?? null };
}

/** What operators do gets through to every node, forming or draining: a drained node could not be resumed otherwise. */
export function isUpkeep({ tag }: Pick<Operation, "tag">): boolean {
  return tag === "node" || tag === "cluster" || tag === "access";
}

/** The leader is the controller, gateway or not; it decides itself what it takes while it drains. */
export function isController({ tag }: Pick<Operation, "tag">): boolean {
  return tag === "controller";
}

function ownerOf(target: Target): NodeName | null {
  return target.at === "owner" ? (parseJobId(target.job)?.birthplace ?? null) : null;
}

export function ownerUnreachable(
  owner: string | null,
  why: string,
  details: Readonly<Record<string, unknown>> = {},
): BatonError {
  return new BatonError(
    "OWNER_UNREACHABLE",
    `the node that keeps this job (${owner}) cannot be reached from here: ${why}`,
    { owner, ...details },
  );
}

/** Reads the services when it is read, so that a request pays only for what its decision needs. */
function liveView(services: NodeServices, forwarded: boolean): View {
  const { identity, guarantees } = services;
  return {
    self: identity.name,
    sharedStore: guarantees.shared,
    forwarded,
    get draining() {
      return services.health.draining;
    },
    get leading() {
      return services.leadership.held() !== null;
    },
    get leader() {
      return services.leadership.current()?.leader ?? null;
    },
    get nodes() {
      return services.membership.nodes();
    },
    /** The members are agreed under a leader; without one, or before the cluster has formed, a node may be missing. */
    get settled() {
      const { health, peers } = services;
      return this.leader !== null && health.forming === null && peers?.agreed() !== false;
    },
  };
}
