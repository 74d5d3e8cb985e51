/**
 * Publishes the state of a worker: at once after a quiet time, then once for all changes in between, and at intervals. The counts are
 * cumulative, so that a lost message is made up for by the next.
 */

import type { Channels } from "../../channels/channels.ts";
import type { WorkerHeartbeat } from "../../channels/messages.ts";
import { topics } from "../../channels/channel-names.ts";
import type { Platform } from "../../platform/platform.ts";

export type WorkerState = Omit<WorkerHeartbeat, "node" | "incarnation" | "at">;

export interface WorkerHeartbeatOptions extends Pick<Platform, "clock" | "identity"> {
  readonly channels: Pick<Channels, "publish">;
  readonly heartbeatMs: number;
  readonly state: () => WorkerState;
}

/** Smaller, and every few jobs cost a message to all nodes; larger, and a leader hears too late that there is room. */
const SPACING_MS = 5;

export class WorkerHeartbeatPublisher {
  readonly #o: WorkerHeartbeatOptions;
  #beating = false;
  #sent = "";
  #sentAt = -Infinity;
  #callOffNext: (() => void) | null = null;
  #callOffChange: (() => void) | null = null;

  constructor(options: WorkerHeartbeatOptions) {
    this.#o = options;
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
    const waitMs = this.#sentAt + SPACING_MS - this.#o.clock.monotonic();
    if (waitMs <= 0) return this.#sendChange();
    this.#callOffChange = this.#o.clock.after(waitMs, () => {
      this.#callOffChange = null;
      this.#sendChange();
    });
  }

  beat(): void {
    this.#send(this.#o.state());
  }

  #sendChange(): void {
    const state = this.#o.state();
    if (contentOf(state) !== this.#sent) this.#send(state);
  }

  #send(state: WorkerState): void {
    const { clock, identity } = this.#o;
    if (!this.#beating) return;
    this.#sent = contentOf(state);
    this.#sentAt = clock.monotonic();
    this.#callOffNext?.();
    this.#callOffNext = clock.after(this.#o.heartbeatMs, () => this.beat());
    const body: WorkerHeartbeat = {
      node: identity.name,
      incarnation: identity.incarnation,
      ...state,
      at: new Date(clock.now()).toISOString(),
    };
    void this.#o.channels.publish(topics.workerHeartbeat, [{ key: identity.name, body }]).catch(() => {});
  }
}

function contentOf({ status, wants, taken, suspects }: WorkerState): string {
  return JSON.stringify([status, wants, taken, suspects]);
}
