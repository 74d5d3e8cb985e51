import type { Subscription } from "../../channels/channels.ts";
import type { Assignment } from "../../channels/messages.ts";
import { queues } from "../../channels/channel-names.ts";
import type { OwnerOptions } from "./owner-options.ts";
import type { OwnershipClaims } from "./ownership-claims.ts";

export interface AssignmentSubscriberOptions extends Pick<OwnerOptions, "channels"> {
  readonly claims: OwnershipClaims;
}

/** Taken together. More, and one node gets most of a burst while the others get nothing. */
const BATCH_MAX = 2;

/** Competes with the other nodes for the assignments that the leader makes. A lost claim is fine: another node has it. */
export class AssignmentSubscriber {
  readonly #o: AssignmentSubscriberOptions;
  #subscription: Subscription | null = null;

  constructor(options: AssignmentSubscriberOptions) {
    this.#o = options;
  }

  open(): void {
    const { channels, claims } = this.#o;
    this.#subscription ??= channels.consume(
      queues.assigned,
      async (batch) => void (await claims.claim(batch.map(({ body }) => body as Assignment))),
      { batchMax: BATCH_MAX },
    );
  }

  /** Takes no more; claims that are under way are completed. */
  async close(): Promise<void> {
    const subscription = this.#subscription;
    this.#subscription = null;
    await subscription?.close();
  }
}
