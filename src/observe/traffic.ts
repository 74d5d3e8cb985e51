/**
 * The rate of jobs in and out through this node, counted when the store accepts them. Sums of a few seconds are kept in a
 * ring, because the rate of the last batch alone would jump.
 */

import { rounded } from "../core/format-figures.ts";
import type { NodeTraffic } from "../core/node.ts";
import type { Clock } from "../platform/clock.ts";

/** Whole seconds that a rate is made of. Fewer, and it jumps; more, and it shows what is long over. */
const SECONDS = 10;
/** Queues whose rates are sent to the other nodes, the busiest first: they are part of every heartbeat. */
const TOLD_MAX = 20;
/** Queues that are counted at all; what comes after belongs to the sum alone. */
const QUEUES_MAX = 1_000;

const IN = 0;
const OUT = 1;
const FAILED = 2;
const KINDS = 3;

export class Traffic {
  readonly #clock: Clock;
  readonly #all = new Ring();
  readonly #queues = new Map<string, Ring>();
  #since: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#since = this.#second();
  }

  submitted(jobs: readonly { readonly queue: string }[]): void {
    const second = this.#second();
    for (const { queue } of jobs) this.#count(second, IN, queue);
  }

  /** `queue` is not known of every run that ends. */
  finished(queue: string | undefined, failed: boolean, jobs = 1): void {
    const second = this.#second();
    this.#count(second, OUT, queue, jobs);
    if (failed) this.#count(second, FAILED, queue, jobs);
  }

  read(): NodeTraffic {
    const second = this.#second();
    const seconds = Math.max(1, Math.min(SECONDS, second - this.#since));
    const rate = (ring: Ring, kind: number): number => rounded(ring.sum(second, kind) / seconds);
    const queues = [...this.#queues].map(([name, ring]) => ({
      name,
      in: rate(ring, IN),
      out: rate(ring, OUT),
    }));
    for (const each of queues) if (each.in + each.out === 0) this.#queues.delete(each.name);
    const busiest = queues
      .filter((each) => each.in + each.out > 0)
      .sort((a, b) => b.in + b.out - (a.in + a.out));
    return {
      submitted: rate(this.#all, IN),
      finished: rate(this.#all, OUT),
      failed: rate(this.#all, FAILED),
      queues: busiest.slice(0, TOLD_MAX).map((each) => [each.name, each.in, each.out]),
      others: busiest.length > TOLD_MAX,
    };
  }

  #second(): number {
    return Math.floor(this.#clock.monotonic() / 1_000);
  }

  #count(second: number, kind: number, queue: string | undefined, jobs = 1): void {
    this.#all.add(second, kind, jobs);
    if (queue === undefined) return;
    let ring = this.#queues.get(queue);
    if (!ring) {
      if (this.#queues.size >= QUEUES_MAX) return;
      this.#queues.set(queue, (ring = new Ring()));
    }
    ring.add(second, kind, jobs);
  }
}

/** A count of each kind for each of the last seconds, and for the one that is under way. */
class Ring {
  readonly #counts = new Float64Array(KINDS * (SECONDS + 1));
  #last = 0;

  add(second: number, kind: number, jobs: number): void {
    this.#turn(second);
    this.#counts[(second % (SECONDS + 1)) * KINDS + kind]! += jobs;
  }

  sum(second: number, kind: number): number {
    this.#turn(second);
    let sum = 0;
    for (let back = 1; back <= SECONDS; back++) {
      const at = (second - back + SECONDS + 1) % (SECONDS + 1);
      sum += this.#counts[at * KINDS + kind]!;
    }
    return sum;
  }

  #turn(second: number): void {
    if (second === this.#last) return;
    for (let at = Math.max(this.#last + 1, second - SECONDS); at <= second; at++) {
      const place = (at % (SECONDS + 1)) * KINDS;
      this.#counts.fill(0, place, place + KINDS);
    }
    this.#last = second;
  }
}
