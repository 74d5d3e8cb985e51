/**
 * The clocks of one process in a world whose time is a manual clock's. They may run at another rate, and the wall may be set. The
 * process may be paused (SIGSTOP: its timers and turns wait, its clocks go on) or ended (SIGKILL: they never come), and the machine may
 * sleep (its monotonic clock stands still, its timers too).
 */

import type { Clock } from "../../src/platform/clock.ts";
import { sleepOn, type ManualClock } from "./manual-clock.ts";

/** Of rates that are not whole. */
const ROUNDING_MS = 1e-6;

export class ProcessClock implements Clock {
  readonly #world: ManualClock;
  readonly #rate: number;
  #skewMs: number;
  /** What the monotonic clock has not counted, because the machine slept. */
  #sleptMs = 0;
  #asleepSince: number | null = null;
  #state: "runs" | "paused" | "ended" = "runs";
  readonly #held: (() => void)[] = [];

  constructor(world: ManualClock, { rate = 1, skewMs = 0 } = {}) {
    this.#world = world;
    this.#rate = rate;
    this.#skewMs = skewMs;
  }

  now(): number {
    return this.#world.now() + this.#skewMs;
  }

  monotonic(): number {
    return (this.#asleepSince ?? this.#world.monotonic()) * this.#rate - this.#sleptMs;
  }

  after(ms: number, callback: () => void): () => void {
    const at = this.monotonic() + Math.max(ms, 0);
    let calledOff = false;
    let callOff = (): void => {};
    const wait = (leftMs: number): void => void (callOff = this.#world.after(leftMs / this.#rate, fire));
    const fire = this.#whenRunning(() => {
      if (calledOff) return;
      // The machine slept in between: this much is still to go.
      const leftMs = at - this.monotonic();
      if (leftMs > ROUNDING_MS) wait(leftMs);
      else callback();
    });
    wait(Math.max(ms, 0));
    return () => {
      calledOff = true;
      callOff();
    };
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return sleepOn(this, ms, signal);
  }

  turn(): Promise<void> {
    return new Promise((resolve) => this.#world.afterTurn(this.#whenRunning(resolve)));
  }

  get state(): "runs" | "paused" | "ended" {
    return this.#state;
  }

  jumpWall(ms: number): void {
    this.#skewMs += ms;
  }

  pause(): void {
    if (this.#state === "runs") this.#state = "paused";
  }

  /** What is overdue happens with the next turn of the world, in order. */
  resume(): void {
    if (this.#state !== "paused") return;
    this.#state = "runs";
    this.#release();
  }

  end(): void {
    this.#state = "ended";
    this.#held.length = 0;
  }

  suspend(): void {
    this.#asleepSince = this.#world.monotonic();
  }

  wake(): void {
    if (this.#asleepSince === null) return;
    this.#sleptMs += (this.#world.monotonic() - this.#asleepSince) * this.#rate;
    this.#asleepSince = null;
    this.#release();
  }

  #whenRunning(callback: () => void): () => void {
    const fire = (): void => {
      if (this.#state === "ended") return;
      if (this.#state === "paused" || this.#asleepSince !== null) this.#held.push(fire);
      else callback();
    };
    return fire;
  }

  #release(): void {
    for (const fire of this.#held.splice(0)) this.#world.after(0, fire);
  }
}
