import assert from "node:assert/strict";
import { PendingRequest, type Membership, type NodeRequest } from "../../src/leadership/coordination.ts";
import type { NodeName } from "../../src/core/ids.ts";
import type { NodeIdentity, NodeInfo, NodeStatus } from "../../src/core/node.ts";
import type { OpenMembership } from "../contract/coordination/membership.ts";
import { candidate, OWN_INFO } from "./lock-candidates.ts";
import { ROLE } from "./lock-world.ts";

/** The reference membership, of a cluster of one, in the fewest lines. */
export class MemoryMembership implements Membership {
  readonly identity: NodeIdentity;
  #status: NodeStatus = "joining";
  #pending = new PendingRequest();

  constructor(identity: NodeIdentity) {
    this.identity = identity;
  }

  nodes(): readonly NodeInfo[] {
    return [{ ...OWN_INFO, ...this.identity, status: this.#status, lastSeenAt: 1, alive: true }];
  }

  async setStatus(status: NodeStatus): Promise<void> {
    this.#status = status;
  }

  async ask(node: NodeName, request: NodeRequest): Promise<boolean> {
    if (node === this.identity.name) this.#pending.put(request);
    return node === this.identity.name;
  }

  requests(signal: AbortSignal): AsyncIterable<NodeRequest> {
    return this.#follow(signal);
  }

  async *#follow(signal: AbortSignal): AsyncGenerator<NodeRequest> {
    for await (const request of this.#pending.follow(signal)) yield* this.deliver(request);
  }

  displaced(): string | null {
    return null;
  }

  async findDead(): Promise<readonly NodeIdentity[]> {
    return [];
  }

  async markRecovered(): Promise<void> {}

  protected async *deliver(request: NodeRequest): AsyncGenerator<NodeRequest> {
    yield request;
  }

  protected empty(): void {
    this.#pending = new PendingRequest();
  }
}

export function openMemoryMembership(Kind: typeof MemoryMembership): OpenMembership {
  return async () => {
    const identity = candidate("ada");
    return {
      membership: new Kind(identity),
      identity,
      info: OWN_INFO,
      fence: { role: ROLE, leader: identity.name, incarnation: identity.incarnation, epoch: 1 },
      join: () => assert.fail("a cluster of one"),
      close: async () => {},
    };
  };
}
