import { systemClock } from "../../src/platform/clock.ts";
import { atEnd, type Scope } from "./node-cleanup.ts";

type Asked = { readonly url: string };

/** Asks every node again and again, one question at a time each, until the test is over or this is stopped. */
export class Asking {
  readonly #over = new AbortController();
  readonly #waiting = new Map<string, Promise<void>>();
  readonly #loop: Promise<void>;

  constructor(
    t: Scope,
    pauseMs: number,
    nodes: () => ReadonlyMap<string, Asked>,
    ask: (name: string, node: Asked, over: AbortSignal) => Promise<void>,
  ) {
    const { signal } = this.#over;
    this.#loop = (async () => {
      for (; !signal.aborted; await systemClock.sleep(pauseMs, signal)) {
        for (const [name, node] of nodes()) {
          // A node that was started again has another address, and its dead self may still be asked.
          const key = `${name} ${node.url}`;
          if (this.#waiting.has(key)) continue;
          const asking = ask(name, node, signal).finally(() => this.#waiting.delete(key));
          this.#waiting.set(key, asking);
        }
      }
    })();
    atEnd(t, () => this.stop());
  }

  async stop(): Promise<void> {
    this.#over.abort();
    await this.#loop;
    await Promise.all(this.#waiting.values());
  }
}
