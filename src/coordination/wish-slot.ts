import type { NodeWish } from "./coordination.ts";

/** What was asked of a node, until somebody hears it. There is room for one wish: a newer one takes the place. */
export class WishSlot {
  #wish: NodeWish | null = null;
  readonly #waiting = new Set<() => void>();

  put(wish: NodeWish): void {
    this.#wish = wish;
    for (const wake of this.#waiting) wake();
  }

  /** Every wish is told to one follower. */
  async *follow(signal: AbortSignal): AsyncGenerator<NodeWish> {
    while (!signal.aborted) {
      const wish = this.#wish;
      this.#wish = null;
      if (wish) yield wish;
      else await this.#change(signal);
    }
  }

  #change(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        this.#waiting.delete(wake);
        signal.removeEventListener("abort", wake);
        resolve();
      };
      this.#waiting.add(wake);
      signal.addEventListener("abort", wake, { once: true });
    });
  }
}
