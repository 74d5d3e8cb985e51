import type { Clock } from "../../src/platform/clock.ts";
import type { ManualClock } from "./manual-clock.ts";

/**
 * One node's clocks in a world whose time is the given manual clock's. They may run at another rate, the wall may be
 * set, the process may be stopped (its timers fire late, its clocks go on) and the machine may sleep (its monotonic
 * clock stands still, its timers too).
 */
export class NodeClock implements Clock {
  readonly #world: ManualClock;
  readonly #rate: number;
  #wallOffset = 0;
  #monoOffset = 0;
  #asleepSince: number | null = null;
  #stopped = false;
  readonly #held: (() => void)[] = [];

  constructor(world: ManualClock, rate = 1) {
    this.#world = world;
    this.#rate = rate;
  }

  now(): number {
    return this.#world.now() + this.#wallOffset;
  }

  monotonic(): number {
    return (this.#asleepSince ?? this.#world.monotonic()) * this.#rate - this.#monoOffset;
  }

  async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) return;
    const done = Promise.withResolvers<void>();
    const cancel = this.after(ms, done.resolve);
    signal?.addEventListener("abort", () => done.resolve(), { once: true });
    await done.promise;
    cancel();
  }

  after(ms: number, callback: () => void): () => void {
    const at = this.monotonic() + Math.max(ms, 0);
    let cancelled = false;
    const fire = (): void => {
      if (cancelled) return;
      if (this.#stopped || this.#asleepSince !== null) this.#held.push(fire);
      // The machine slept in between: this much is still to go.
      else if (at - this.monotonic() > 1e-6) this.#world.after((at - this.monotonic()) / this.#rate, fire);
      else callback();
    };
    this.#world.after(Math.max(ms, 0) / this.#rate, fire);
    return () => {
      cancelled = true;
    };
  }

  async turn(): Promise<void> {
    await this.#world.turn();
    if (this.#stopped || this.#asleepSince !== null)
      await new Promise<void>((resolve) => this.#held.push(resolve));
  }

  jumpWall(ms: number): void {
    this.#wallOffset += ms;
  }

  /** SIGSTOP. */
  stop(): void {
    this.#stopped = true;
  }

  /** SIGCONT: what is overdue fires with the next turn of the world. */
  resume(): void {
    this.#stopped = false;
    this.#fireHeld();
  }

  suspend(): void {
    this.#asleepSince = this.#world.monotonic();
  }

  wake(): void {
    if (this.#asleepSince === null) return;
    this.#monoOffset += (this.#world.monotonic() - this.#asleepSince) * this.#rate;
    this.#asleepSince = null;
    this.#fireHeld();
  }

  #fireHeld(): void {
    for (const fire of this.#held.splice(0)) this.#world.after(0, fire);
  }
}
