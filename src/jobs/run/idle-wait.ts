import type { Clock } from "../../platform/clock.ts";

/** Waits until nothing runs any more, for so long at most. */
export class IdleWait {
  readonly #clock: Clock;
  readonly #busy: () => boolean;
  #waiters: (() => void)[] = [];

  constructor(options: { readonly clock: Clock; readonly busy: () => boolean }) {
    this.#clock = options.clock;
    this.#busy = options.busy;
  }

  /** Ends early when `hurry` is aborted. */
  async within(ms: number, hurry?: AbortSignal): Promise<void> {
    if (!this.#busy() || ms <= 0 || hurry?.aborted) return;
    const over = new AbortController();
    const end = (): void => over.abort();
    hurry?.addEventListener("abort", end, { once: true });
    const idle = new Promise<void>((resolve) => this.#waiters.push(resolve));
    await Promise.race([idle, this.#clock.sleep(ms, over.signal)]);
    hurry?.removeEventListener("abort", end);
    end();
  }

  /** Nothing runs. */
  tell(): void {
    for (const resolve of this.#waiters.splice(0)) resolve();
  }
}
