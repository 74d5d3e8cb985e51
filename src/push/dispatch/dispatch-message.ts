import type { Dispatch } from "../../channels/messages.ts";
import type { DispatchedJob } from "../../store/ownership.ts";

/** A job in hand, with the message that it came in: some of its jobs may be accepted while others go back. */
export interface JobInHand {
  readonly job: DispatchedJob;
  readonly from: DispatchMessage;
}

/** What the jobs of a message of a dispatch queue share. */
export interface DispatchMessage {
  readonly channel: string;
  readonly dispatch: Omit<Dispatch, "jobs">;
  readonly batch: DeliveryBatch;
}

/** The jobs that were delivered together. They are handled when each of them is, and come again when one could not be. */
export type DeliveryBatch = ReturnType<typeof deliveryBatch>;

export function deliveryBatch() {
  const { promise: handled, resolve, reject: fail } = Promise.withResolvers<void>();
  let left = 0;
  return {
    handled,
    fail,
    add: () => void left++,
    done() {
      if (--left === 0) resolve();
    },
  };
}
