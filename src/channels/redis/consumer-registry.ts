/** The consumers of this node, each with a number by which it is woken. */

import type { Consumer } from "./consumer.ts";
import type { QueueConsumer } from "./queue-messages.ts";

interface Seated {
  readonly seat: QueueConsumer;
  readonly consumer: Consumer;
}

/** Consumers that look by themselves at a time, in turns: the net below wake-ups that went to somebody who died. */
const LOOKS_MAX = 100;

export class ConsumerRegistry {
  /** In the order in which they look by themselves next. */
  readonly #seats = new Map<number, Seated>();
  /** How many consumers each queue has. */
  readonly #queues = new Map<string, number>();
  #count = 0;

  get queues(): string[] {
    return [...this.#queues.keys()];
  }

  take(queue: string, consume: (seat: QueueConsumer) => Consumer): Seated {
    const seat: QueueConsumer = { queue, number: ++this.#count, joined: false, registered: false };
    const seated = { seat, consumer: consume(seat) };
    this.#seats.set(seat.number, seated);
    this.#queues.set(queue, (this.#queues.get(queue) ?? 0) + 1);
    return seated;
  }

  /** How many the queue still has; null when it had gone before. */
  leave({ number, queue }: QueueConsumer): number | null {
    if (!this.#seats.delete(number)) return null;
    const left = this.#queues.get(queue)! - 1;
    if (left > 0) this.#queues.set(queue, left);
    else this.#queues.delete(queue);
    return left;
  }

  /** Whether it is there. */
  wake(number: number): boolean {
    const seated = this.#seats.get(number);
    if (!seated) return false;
    seated.seat.registered = false;
    seated.consumer.wake();
    return true;
  }

  wakeAll(): void {
    for (const { consumer } of this.#seats.values()) consumer.wake();
  }

  /** Some of those who wait look by themselves. */
  wakeSome(): void {
    let left = Math.min(LOOKS_MAX, this.#seats.size);
    for (const [number, seated] of this.#seats) {
      if (left-- === 0) return;
      // Behind the others for the next time.
      this.#seats.delete(number);
      this.#seats.set(number, seated);
      if (seated.consumer.idle) seated.consumer.wake();
    }
  }

  /** Redis knows nothing of them any more. */
  forgotten(): void {
    for (const { seat } of this.#seats.values()) {
      seat.joined = false;
      seat.registered = false;
    }
    this.wakeAll();
  }
}
