import type { Subscription } from "./channels.ts";

/** All that a keeper has given out and nobody has closed yet, so that its stop can. */
export class Subscriptions {
  readonly #open = new Set<Subscription>();

  add(subscription: Subscription): Subscription {
    const remembered: Subscription = {
      close: async () => {
        await subscription.close();
        this.#open.delete(remembered);
      },
    };
    this.#open.add(remembered);
    return remembered;
  }

  async closeAll(): Promise<void> {
    await Promise.all([...this.#open].map((subscription) => subscription.close()));
  }
}
