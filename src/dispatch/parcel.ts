/** What a worker has in hand: messages of dispatch queues whose jobs it has not accepted yet. */

import type { Delivery, Message } from "../channels/channels.ts";
import type { Dispatch } from "../channels/messages.ts";
import type { DispatchedJob } from "../store/ownership.ts";

/** Messages that were delivered together. They are handled when each of them is, and come again when one could not be. */
export class ParcelBatch {
  readonly handled: Promise<void>;
  #left = 0;
  readonly #resolve: () => void;
  readonly #reject: (error: unknown) => void;

  constructor() {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.handled = promise;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  add(): void {
    this.#left++;
  }

  done(): void {
    if (--this.#left === 0) this.#resolve();
  }

  fail(error: unknown): void {
    this.#reject(error);
  }
}

/** One message, or a part of one: some of its jobs may be accepted while others go back. */
export class Parcel {
  readonly channel: string;
  readonly dispatch: Omit<Dispatch, "jobs">;
  readonly batch: ParcelBatch;
  jobs: readonly DispatchedJob[];

  constructor(
    channel: string,
    dispatch: Omit<Dispatch, "jobs">,
    jobs: readonly DispatchedJob[],
    batch: ParcelBatch,
  ) {
    this.channel = channel;
    this.dispatch = dispatch;
    this.jobs = jobs;
    this.batch = batch;
    batch.add();
  }

  static of(channel: string, { body }: Delivery, batch: ParcelBatch): Parcel {
    const { jobs, ...dispatch } = body as Dispatch;
    return new Parcel(channel, dispatch, jobs, batch);
  }

  get passed(): number {
    return this.dispatch.passed ?? 0;
  }

  /** The first so many of its jobs, as a parcel of their own. */
  split(count: number): Parcel {
    const first = new Parcel(this.channel, this.dispatch, this.jobs.slice(0, count), this.batch);
    this.jobs = this.jobs.slice(count);
    return first;
  }

  /** As it is sent to others. */
  message(): Message {
    const body: Dispatch = { ...this.dispatch, jobs: this.jobs, passed: this.passed + 1 };
    return { key: this.jobs[0]!.id, body };
  }
}

/** Parcels in the order in which they came. */
export class Hand {
  #parcels: Parcel[] = [];
  #jobs = 0;

  /** How many jobs. */
  get size(): number {
    return this.#jobs;
  }

  add(parcel: Parcel): void {
    this.#parcels.push(parcel);
    this.#jobs += parcel.jobs.length;
  }

  putBack(parcels: readonly Parcel[]): void {
    this.#parcels.unshift(...parcels);
    for (const { jobs } of parcels) this.#jobs += jobs.length;
  }

  /** Up to so many jobs from the front. */
  take(most: number): Parcel[] {
    let left = most;
    let whole = 0;
    while (left > 0 && whole < this.#parcels.length && this.#parcels[whole]!.jobs.length <= left) {
      left -= this.#parcels[whole++]!.jobs.length;
    }
    const taken = this.#parcels.splice(0, whole);
    const next = this.#parcels[0];
    if (left > 0 && next) {
      taken.push(next.split(left));
      left = 0;
    }
    this.#jobs -= most - left;
    return taken;
  }

  /** So many jobs from the end. */
  takeLast(count: number): Parcel[] {
    const taken: Parcel[] = [];
    let left = Math.min(count, this.#jobs);
    this.#jobs -= left;
    while (left > 0) {
      const parcel = this.#parcels.pop()!;
      const surplus = parcel.jobs.length - left;
      if (surplus > 0) this.#parcels.push(parcel.split(surplus));
      left -= parcel.jobs.length;
      taken.push(parcel);
    }
    return taken;
  }
}
