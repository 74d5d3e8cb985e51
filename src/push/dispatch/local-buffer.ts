import type { DispatchMessage } from "./dispatch-message.ts";

/** Messages of dispatch queues whose jobs the worker has not accepted yet, in the order in which they arrived. */
export class LocalBuffer {
  #messages: DispatchMessage[] = [];
  #jobs = 0;

  /** The number of jobs. */
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

  /** Takes up to `most` jobs from the front. */
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

  /** Takes `count` jobs from the end. */
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
