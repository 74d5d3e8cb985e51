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

export type Traffic = ReturnType<typeof trafficOf>;

export function trafficOf(clock: Clock) {
  const all = new Ring();
  const queues = new Map<string, Ring>();
  const since = secondNow();

  function secondNow(): number {
    return Math.floor(clock.monotonic() / 1_000);
  }

  function count(second: number, kind: number, queue: string | undefined, jobs = 1): void {
    all.add(second, kind, jobs);
    if (queue === undefined) return;
    let ring = queues.get(queue);
    if (!ring) {
      if (queues.size >= QUEUES_MAX) return;
      queues.set(queue, (ring = new Ring()));
    }
    ring.add(second, kind, jobs);
  }

  return {
    submitted(jobs: readonly { readonly queue: string }[]): void {
      const second = secondNow();
      for (const { queue } of jobs) count(second, IN, queue);
    },

    /** `queue` is not known of every run that ends. */
    finished(queue: string | undefined, failed: boolean, jobs = 1): void {
      const second = secondNow();
      count(second, OUT, queue, jobs);
      if (failed) count(second, FAILED, queue, jobs);
    },

    read(): NodeTraffic {
      const second = secondNow();
      const seconds = Math.max(1, Math.min(SECONDS, second - since));
      const rate = (ring: Ring, kind: number): number => rounded(ring.sum(second, kind) / seconds);
      const busy: [name: string, submitted: number, finished: number][] = [];
      for (const [name, ring] of queues) {
        const [submitted, finished] = [rate(ring, IN), rate(ring, OUT)];
        if (submitted + finished > 0) busy.push([name, submitted, finished]);
        else queues.delete(name);
      }
      busy.sort((a, b) => b[1] + b[2] - (a[1] + a[2]));
      return {
        submitted: rate(all, IN),
        finished: rate(all, OUT),
        failed: rate(all, FAILED),
        queues: busy.slice(0, TOLD_MAX),
        others: busy.length > TOLD_MAX,
      };
    },
  };
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
