/** Messages of dispatch queues as a worker handles them: delivered together, buffered, split, accepted in part, sent on. */

import type { Message } from "../../channels/channels.ts";
import type { Dispatch } from "../../channels/messages.ts";
import type { DispatchedJob } from "../../store/ownership.ts";

/** Messages that were delivered together. They are handled when each of them is, and come again when one could not be. */
export class DeliveryBatch {
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
export class DispatchMessage {
  readonly channel: string;
  readonly dispatch: Omit<Dispatch, "jobs">;
  readonly batch: DeliveryBatch;
  jobs: readonly DispatchedJob[];

  constructor(
    channel: string,
    dispatch: Omit<Dispatch, "jobs">,
    jobs: readonly DispatchedJob[],
    batch: DeliveryBatch,
  ) {
    this.channel = channel;
    this.dispatch = dispatch;
    this.jobs = jobs;
    this.batch = batch;
    batch.add();
  }

  get passed(): number {
    return this.dispatch.passed ?? 0;
  }

  split(count: number): DispatchMessage {
    const first = new DispatchMessage(this.channel, this.dispatch, this.jobs.slice(0, count), this.batch);
    this.jobs = this.jobs.slice(count);
    return first;
  }

  forwarded(): Message {
    const body: Dispatch = { ...this.dispatch, jobs: this.jobs, passed: this.passed + 1 };
    return { key: this.jobs[0]!.id, body };
  }
}

/** Messages of dispatch queues whose jobs the worker has not accepted yet, in the order in which they arrived. */
export class LocalBuffer {
  #messages: DispatchMessage[] = [];
  #jobs = 0;

  get size(): number {
    return this.#jobs;
  }

  add(message: DispatchMessage): void {
    this.#messages.push(message);
    this.#jobs += message.jobs.length;
  }

  putBack(messages: readonly DispatchMessage[]): void {
    this.#messages.unshift(...messages);
    for (const { jobs } of messages) this.#jobs += jobs.length;
  }

  take(most: number): DispatchMessage[] {
    let left = most;
    let whole = 0;
    while (left > 0 && whole < this.#messages.length && this.#messages[whole]!.jobs.length <= left) {
      left -= this.#messages[whole++]!.jobs.length;
    }
    const taken = this.#messages.splice(0, whole);
    const next = this.#messages[0];
    if (left > 0 && next) {
      taken.push(next.split(left));
      left = 0;
    }
    this.#jobs -= most - left;
    return taken;
  }

  takeLast(count: number): DispatchMessage[] {
    const taken: DispatchMessage[] = [];
    let left = Math.min(count, this.#jobs);
    this.#jobs -= left;
    while (left > 0) {
      const message = this.#messages.pop()!;
      const surplus = message.jobs.length - left;
      if (surplus > 0) this.#messages.push(message.split(surplus));
      left -= message.jobs.length;
      taken.push(message);
    }
    return taken;
  }
}
