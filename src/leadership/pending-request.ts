import type { NodeRequest } from "./coordination.ts";

/** The last request to a node, until it is read. A newer request replaces an older one. */
export class PendingRequest {
  #request: NodeRequest | null = null;
  readonly #waiting = new Set<() => void>();

  put(request: NodeRequest): void {
    this.#request = request;
    for (const wake of this.#waiting) wake();
  }

  /** Every request goes to one follower. */
  async *follow(signal: AbortSignal): AsyncGenerator<NodeRequest> {
    while (!signal.aborted) {
      const request = this.#request;
      this.#request = null;
      if (request) yield request;
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
