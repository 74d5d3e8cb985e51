import type { Channels, Delivery, Subscription } from "../channels/channels.ts";
import type { Assignment } from "../channels/messages.ts";
import { queues } from "../channels/names.ts";
import type { OwnershipClaims } from "./ownership-claims.ts";

export interface AssignmentSubscriberOptions {
  readonly channels: Pick<Channels, "consume">;
  readonly claims: Pick<OwnershipClaims, "claim">;
}

/** Taken together. More, and one node gets most of a burst while the others get nothing. */
const BATCH_MAX = 2;

/** Competes with the other nodes for the assignments that the leader makes. To lose one is fine: somebody has it. */
export class AssignmentSubscriber {
  readonly #o: AssignmentSubscriberOptions;
  #subscription: Subscription | null = null;

  constructor(options: AssignmentSubscriberOptions) {
    this.#o = options;
  }

  open(): void {
    this.#subscription ??= this.#o.channels.consume(
      queues.assigned,
      async (batch) => void (await this.#o.claims.claim(batch.map(claimOf))),
      { batchMax: BATCH_MAX },
    );
  }

  /** Takes no more; what is in hand is taken to its end. */
  async close(): Promise<void> {
    const subscription = this.#subscription;
    this.#subscription = null;
    await subscription?.close();
  }
}

function claimOf({ body }: Delivery) {
  const { assignment, ownerEpoch, jobs } = body as Assignment;
  return { assignment, ownerEpoch, jobs };
}
