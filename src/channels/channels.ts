/**
 * Channels: messages between nodes.
 *
 * - A **queue** stores every message until one consumer has handled it. Consumers compete; a message is delivered again if
 *   its handler failed or its consumer disappeared. Delivery is at least once. Batches are taken in the order of sending and
 *   handled at the same time by several consumers. Messages sent before there is a consumer are stored.
 * - A queue that is consumed as **exclusive** has one batch out at a time, on all nodes together, and keeps the order of
 *   sending: while a failed batch waits for its redelivery, nothing behind it is delivered. All consumers of a queue say the
 *   same. Not kept: that a consumer which was taken for dead has stopped when the next one starts.
 * - A **topic** reaches every subscriber that is subscribed when a message arrives, in the order of publishing. Messages are
 *   not stored: a message is a hint to read the store, never the only copy of a fact. A `publish` that rejects may have
 *   reached some subscribers.
 *
 * A slow handler delays neither the sender nor other subscribers.
 */

import type { Service } from "../platform/service.ts";

export interface Channels extends Service {
  /** For display only: code asks for what follows. */
  readonly kind: string;
  /** Whether messages reach other nodes. */
  readonly shared: boolean;
  /** Whether the store sends `jobs.ready` here with the commit of a submit: true where both are one database. */
  readonly notifiesOnSubmit: boolean;
  /** Where the store notifies this process alone, and nobody else may; null if it would not be heard. Left out where no store sends anything. */
  readonly privateChannel?: string | null;
  /** What is not promised because of these channels, for `baton status`. */
  readonly limits: readonly string[];

  send(queue: string, messages: readonly Message[]): Promise<void>;
  /** Handles batches until it is closed. A handler that rejects leaves its whole batch for another delivery. */
  consume(
    queue: string,
    handler: (batch: readonly Delivery[]) => Promise<void>,
    options?: ConsumeOptions,
  ): Subscription;

  publish(topic: string, messages: readonly Message[]): Promise<void>;
  /** A handler that throws loses its message; it is logged and the next one is delivered. */
  subscribe(topic: string, handler: (message: Message) => void | Promise<void>): Subscription;

  /** Delivers again now what a dead consumer had, before the end of its lease. Left out where consumers have no names. */
  takeOver?(consumer: string): Promise<void>;
}

export interface Message {
  /** For the reader; no order depends on it. */
  readonly key: string;
  readonly body: unknown;
}

export interface Delivery extends Message {
  /** 1 for the first delivery. */
  readonly deliveries: number;
}

/** Large enough to make a batch worth it, small enough that one bad message takes few others back with it. */
export const BATCH_MAX = 100;

export interface ConsumeOptions {
  readonly batchMax?: number;
  readonly exclusive?: boolean;
}

export interface Subscription {
  /** Resolves when no handler runs any more. What was taken and not handled goes back. */
  close(): Promise<void>;
}
