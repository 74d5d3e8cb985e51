/**
 * Remembers what was added for at least so long, in two generations: when the young one is a whole time old it becomes the
 * old one, and what was the old one is dropped. So there is no timer, and no list to search.
 */

import type { Clock } from "./clock.ts";

export class Recent<Item> {
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #ms: number;
  #young = new Set<Item>();
  #old = new Set<Item>();
  #youngSince: number;

  constructor(clock: Pick<Clock, "monotonic">, ms: number) {
    this.#clock = clock;
    this.#ms = ms;
    this.#youngSince = clock.monotonic();
  }

  get size(): number {
    return this.#young.size + this.#old.size;
  }

  add(item: Item): void {
    this.#turn();
    this.#young.add(item);
  }

  has(item: Item): boolean {
    this.#turn();
    return this.#young.has(item) || this.#old.has(item);
  }

  /** How many were added since the young generation began. */
  added(): number {
    this.#turn();
    return this.#young.size;
  }

  #turn(): void {
    const now = this.#clock.monotonic();
    const age = now - this.#youngSince;
    if (age < this.#ms) return;
    this.#old = age < 2 * this.#ms ? this.#young : new Set();
    this.#young = new Set();
    this.#youngSince = now;
  }
}
