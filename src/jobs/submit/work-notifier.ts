/** Sends the work signal to the workers of other nodes: at once after a quiet time, then once for all jobs in between. Only a hint. */

import type { Channels } from "../../channels/channels.ts";
import { topics } from "../../channels/channel-names.ts";
import type { NodeIdentity, NodeInfo } from "../../core/node.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Platform } from "../../platform/platform.ts";

/** Smaller, and a flood of submits becomes a flood of wake-ups; larger, and jobs of the flood wait for it. */
const SPACING_MS = 2;
const CHECK_MS = 100;

export class WorkNotifier {
  readonly #clock: Clock;
  readonly #channels: Pick<Channels, "publish">;
  readonly #hasListeners: () => boolean;
  #resting = false;
  #again = false;
  #listened = false;
  #checkedAt = -Infinity;

  /** `hasListeners`: whether any other node wants to know of work. */
  constructor(
    { clock }: Pick<Platform, "clock">,
    channels: Pick<Channels, "publish">,
    hasListeners: () => boolean,
  ) {
    this.#clock = clock;
    this.#channels = channels;
    this.#hasListeners = hasListeners;
  }

  notify(): void {
    if (this.due()) void this.#channels.publish(topics.jobsReady, [{ key: "", body: null }]).catch(() => {});
  }

  /** True when the caller is to send the hint now, by the way that it has. */
  due(): boolean {
    if (this.#resting) {
      this.#again = true;
      return false;
    }
    if (!this.#isHeard()) return false;
    this.#resting = true;
    this.#clock.after(SPACING_MS, () => {
      this.#resting = false;
      if (!this.#again) return;
      this.#again = false;
      this.notify();
    });
    return true;
  }

  /** Nodes come and go slowly, and this is asked with every submit. */
  #isHeard(): boolean {
    const now = this.#clock.monotonic();
    if (now - this.#checkedAt >= CHECK_MS) {
      this.#checkedAt = now;
      this.#listened = this.#hasListeners();
    }
    return this.#listened;
  }
}

/** Whether another node is to hear of work: one that runs jobs, or one that may lead and has agents that do. */
export function hearsOfWork(node: NodeInfo, self: NodeIdentity): boolean {
  if (node.incarnation === self.incarnation || node.status !== "active") return false;
  return node.roles.includes("worker") || node.roles.includes("function") || node.roles.includes("scheduler");
}
