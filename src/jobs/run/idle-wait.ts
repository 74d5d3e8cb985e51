import type { Clock } from "../../platform/clock.ts";
import { within } from "../../platform/loop.ts";

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
    const idle = new Promise<void>((resolve) => this.#waiters.push(resolve));
    await within(this.#clock, ms, idle, hurry);
  }

  /** Nothing runs. */
  tell(): void {
    for (const resolve of this.#waiters.splice(0)) resolve();
  }
}
