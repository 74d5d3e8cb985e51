/** Sends the work signal to the workers of other nodes: at once after a quiet time, then once for all jobs in between. Only a hint. */

import type { Channels } from "../../channels/channels.ts";
import { topics } from "../../channels/channel-names.ts";
import type { NodeIdentity, NodeInfo } from "../../core/node.ts";
import type { Platform } from "../../platform/platform.ts";

/** Smaller, and a flood of submits becomes a flood of wake-ups; larger, and jobs of the flood wait for it. */
const SPACING_MS = 2;
const CHECK_MS = 100;

export interface WorkNotifier {
  notify(): void;
  /** True when the caller is to send the hint now, by the way that it has. */
  due(): boolean;
}

/** `hasListeners`: whether any other node wants to know of work. */
export function workNotifier(
  { clock }: Pick<Platform, "clock">,
  channels: Pick<Channels, "publish">,
  hasListeners: () => boolean,
): WorkNotifier {
  let resting = false;
  let again = false;
  let listened = false;
  let checkedAt = -Infinity;
  /** Nodes come and go slowly, and this is asked with every submit. */
  const isHeard = (): boolean => {
    const now = clock.monotonic();
    if (now - checkedAt >= CHECK_MS) {
      checkedAt = now;
      listened = hasListeners();
    }
    return listened;
  };
  const due = (): boolean => {
    if (resting) {
      again = true;
      return false;
    }
    if (!isHeard()) return false;
    resting = true;
    clock.after(SPACING_MS, () => {
      resting = false;
      if (!again) return;
      again = false;
      notify();
    });
    return true;
  };
  const notify = (): void => {
    if (due()) void channels.publish(topics.jobsReady, [{ key: "", body: null }]).catch(() => {});
  };
  return { notify, due };
}

/** Whether another node is to hear of work: one that runs jobs, or one that may lead and has agents that do. */
export function hearsOfWork(node: NodeInfo, self: NodeIdentity): boolean {
  if (node.incarnation === self.incarnation || node.status !== "active") return false;
  return node.roles.includes("worker") || node.roles.includes("function") || node.roles.includes("scheduler");
}
