/**
 * Publishes the state of a worker: at once after a quiet time, then once for all changes in between, and at intervals. The counts are
 * cumulative, so that a lost message is made up for by the next.
 */

import type { Channels } from "../../channels/channels.ts";
import type { WorkerHeartbeat } from "../../channels/messages.ts";
import { topics } from "../../channels/channel-names.ts";
import type { Platform } from "../../platform/platform.ts";

export type WorkerState = Omit<WorkerHeartbeat, "node" | "incarnation" | "at">;

/** Smaller, and every few jobs cost a message to all nodes; larger, and a leader hears too late that there is room. */
const SPACING_MS = 5;

export class WorkerHeartbeatPublisher {
  readonly #platform: Platform;
  readonly #channels: Pick<Channels, "publish">;
  readonly #heartbeatMs: number;
  readonly #state: () => WorkerState;
  #beating = false;
  #sent = "";
  #sentAt = -Infinity;
  #callOffNext: (() => void) | null = null;
  #callOffChange: (() => void) | null = null;

  constructor(
    platform: Platform,
    channels: Pick<Channels, "publish">,
    heartbeatMs: number,
    state: () => WorkerState,
  ) {
    this.#platform = platform;
    this.#channels = channels;
    this.#heartbeatMs = heartbeatMs;
    this.#state = state;
  }

  start(): void {
    this.#beating = true;
    this.beat();
  }

  stop(): void {
    this.#beating = false;
    this.#callOffNext?.();
    this.#callOffChange?.();
    this.#callOffChange = null;
  }

  changed(): void {
    if (!this.#beating || this.#callOffChange) return;
    const waitMs = this.#sentAt + SPACING_MS - this.#platform.clock.monotonic();
    if (waitMs <= 0) return this.#sendChange();
    this.#callOffChange = this.#platform.clock.after(waitMs, () => {
      this.#callOffChange = null;
      this.#sendChange();
    });
  }

  beat(): void {
    this.#send(this.#state());
  }

  #sendChange(): void {
    const state = this.#state();
    if (contentOf(state) !== this.#sent) this.#send(state);
  }

  #send(state: WorkerState): void {
    const { clock, identity } = this.#platform;
    if (!this.#beating) return;
    this.#sent = contentOf(state);
    this.#sentAt = clock.monotonic();
    this.#callOffNext?.();
    this.#callOffNext = clock.after(this.#heartbeatMs, () => this.beat());
    const body: WorkerHeartbeat = {
      node: identity.name,
      incarnation: identity.incarnation,
      ...state,
      at: new Date(clock.now()).toISOString(),
    };
    void this.#channels.publish(topics.workerHeartbeat, [{ key: identity.name, body }]).catch(() => {});
  }
}

function contentOf({ status, wants, taken, suspects }: WorkerState): string {
  return JSON.stringify([status, wants, taken, suspects]);
}
