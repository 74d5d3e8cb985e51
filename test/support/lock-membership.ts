import assert from "node:assert/strict";
import type { Membership, NodeWish } from "../../src/coordination/coordination.ts";
import { WishSlot } from "../../src/coordination/wish-slot.ts";
import type { NodeName } from "../../src/core/ids.ts";
import type { NodeIdentity, NodeInfo, NodeStatus } from "../../src/core/node.ts";
import type { OpenMembership } from "../contract/coordination/membership.ts";
import { candidate, OWN_INFO } from "./lock-candidates.ts";
import { ROLE } from "./lock-world.ts";

/** The reference membership, of a cluster of one, in the fewest lines. */
export class MemoryMembership implements Membership {
  readonly identity: NodeIdentity;
  #status: NodeStatus = "joining";
  #slot = new WishSlot();

  constructor(identity: NodeIdentity) {
    this.identity = identity;
  }

  nodes(): readonly NodeInfo[] {
    return [{ ...OWN_INFO, ...this.identity, status: this.#status, lastSeenAt: 1, alive: true }];
  }

  async setStatus(status: NodeStatus): Promise<void> {
    this.#status = status;
  }

  async ask(node: NodeName, wish: NodeWish): Promise<boolean> {
    if (node === this.identity.name) this.#slot.put(wish);
    return node === this.identity.name;
  }

  wishes(signal: AbortSignal): AsyncIterable<NodeWish> {
    return this.#follow(signal);
  }

  async *#follow(signal: AbortSignal): AsyncGenerator<NodeWish> {
    for await (const wish of this.#slot.follow(signal)) yield* this.told(wish);
  }

  displaced(): string | null {
    return null;
  }

  async findDead(): Promise<readonly NodeIdentity[]> {
    return [];
  }

  async laidToRest(): Promise<void> {}

  protected async *told(wish: NodeWish): AsyncGenerator<NodeWish> {
    yield wish;
  }

  protected empty(): void {
    this.#slot = new WishSlot();
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
