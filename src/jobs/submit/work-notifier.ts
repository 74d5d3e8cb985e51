/**
 * Sends the work signal to the workers of other nodes: at once after a quiet time, then once for all jobs that arrive
 * in between. The signal is only a hint. Workers also poll, so a failure to send it is ignored.
 */

import type { Channels } from "../../channels/channels.ts";
import { topics } from "../../channels/channel-names.ts";
import type { NodeIdentity, NodeInfo } from "../../core/node.ts";
import type { Clock } from "../../platform/clock.ts";

export interface WorkNotifierOptions {
  readonly channels: Pick<Channels, "publish">;
  readonly clock: Clock;
  /** Whether any other node wants to hear of work. */
  readonly audience: () => boolean;
}

/** Smaller, and a flood of submits becomes a flood of wake-ups; larger, and jobs of the flood wait for it. */
const SPACING_MS = 2;
const LOOK_MS = 100;

export class WorkNotifier {
  readonly #o: WorkNotifierOptions;
  #resting = false;
  #again = false;
  #audience = false;
  #lookedAt = -Infinity;

  constructor(options: WorkNotifierOptions) {
    this.#o = options;
  }

  tell(): void {
    if (this.due())
      void this.#o.channels.publish(topics.jobsReady, [{ key: "", body: null }]).catch(() => {});
  }

  /** True when whoever asks is to send the hint now, by whatever way it has. */
  due(): boolean {
    if (this.#resting) {
      this.#again = true;
      return false;
    }
    if (!this.#hasAudience()) return false;
    this.#resting = true;
    this.#o.clock.after(SPACING_MS, () => {
      this.#resting = false;
      if (!this.#again) return;
      this.#again = false;
      this.tell();
    });
    return true;
  }

  /** Nodes come and go slowly, and this is asked with every submit. */
  #hasAudience(): boolean {
    const now = this.#o.clock.monotonic();
    if (now - this.#lookedAt >= LOOK_MS) {
      this.#lookedAt = now;
      this.#audience = this.#o.audience();
    }
    return this.#audience;
  }
}

/** Whether another node is to hear of work: one that runs jobs, or one that may lead and has agents that do. */
export function hearsOfWork(node: NodeInfo, self: NodeIdentity): boolean {
  if (node.incarnation === self.incarnation || node.status !== "active") return false;
  return node.roles.includes("worker") || node.roles.includes("function") || node.roles.includes("scheduler");
}
