/**
 * The time of a simulated world. Everything that happens is an event on one timeline, also a turn of a process. Nothing in it waits for
 * IO, so a process never runs at the same time as another, and a run repeats exactly.
 */

import { systemClock } from "../../src/platform/clock.ts";
import { ManualClock } from "../support/manual-clock.ts";

export class Timeline extends ManualClock {
  override afterTurn(callback: () => void): void {
    this.after(0, callback);
  }

  async during<T>(work: Promise<T>, atMostMs = 600_000): Promise<T> {
    let over = false;
    const end = (): void => void (over = true);
    work.then(end, end);
    await this.settle();
    for (let passed = 0; !over && passed < atMostMs; passed += 50) await this.advance(50);
    if (!over) throw new Error(`not done within ${atMostMs} ms`);
    return work;
  }

  /** One turn of the real event loop runs every promise that can settle. */
  override settle(): Promise<void> {
    return systemClock.turn();
  }
}
