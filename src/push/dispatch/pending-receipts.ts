/**
 * The receipts that a worker waits for, by number. One timer serves all of them, because they time out in the order in
 * which they were requested.
 */

import type { Receipt } from "../../channels/messages.ts";
import type { Clock } from "../../platform/clock.ts";

interface Waiting {
  readonly since: number;
  readonly resolve: (receipt: Receipt | null) => void;
}

export class PendingReceipts {
  readonly #clock: Clock;
  #waitMs: number;
  readonly #waiting = new Map<number, Waiting>();
  #callOff: (() => void) | null = null;

  constructor(clock: Clock, waitMs: number) {
    this.#clock = clock;
    this.#waitMs = waitMs;
  }

  get waitMs(): number {
    return this.#waitMs;
  }

  /** Counts also for those who wait already. */
  set waitMs(ms: number) {
    this.#waitMs = ms;
    this.#callOff?.();
    this.#callOff = null;
    this.#watch();
  }

  /** Null when none came in time. */
  expect(number: number): Promise<Receipt | null> {
    return new Promise((resolve) => {
      this.#waiting.set(number, { since: this.#clock.monotonic(), resolve });
      this.#watch();
    });
  }

  arrived(receipt: Receipt): void {
    this.#end(receipt.number, receipt);
  }

  /** What it would confirm was not sent. */
  cannotArrive(number: number): void {
    this.#end(number, null);
  }

  giveUp(): void {
    for (const number of this.#waiting.keys()) this.#end(number, null);
    this.#callOff?.();
    this.#callOff = null;
  }

  #end(number: number, receipt: Receipt | null): void {
    const waiting = this.#waiting.get(number);
    this.#waiting.delete(number);
    waiting?.resolve(receipt);
  }

  /** The timer goes on for the oldest of that moment, and looks again: most have ended by then. */
  #watch(): void {
    const [oldest] = this.#waiting.values();
    if (this.#callOff || !oldest) return;
    const leftMs = oldest.since + this.#waitMs - this.#clock.monotonic();
    this.#callOff = this.#clock.after(Math.max(leftMs, 0), () => {
      this.#callOff = null;
      const since = this.#clock.monotonic() - this.#waitMs;
      for (const [number, waiting] of this.#waiting) {
        if (waiting.since > since) break;
        this.#end(number, null);
      }
      this.#watch();
    });
  }
}
