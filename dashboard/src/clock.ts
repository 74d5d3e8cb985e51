/** What time it is for the cluster: the browser's clock, put right by what the node says. */

import { computed, signal } from "@preact/signals";

/** How far the node's clock is ahead of the browser's. Small differences are the way of the message. */
const aheadMs = signal(0);
const WAY_MS = 2_000;

export const second = signal(Date.now());
/** For what changes only by the minute, so that long lists are not drawn every second. */
export const minute = computed(() => Math.floor(second.value / 60_000) * 60_000);

setInterval(() => {
  if (document.visibilityState === "visible") second.value = now();
}, 1_000);

export function now(): number {
  return Date.now() + aheadMs.peek();
}

/** What time the node said it was, and when it was heard. */
export function heardTime(at: string, heardAt: number): void {
  const difference = Date.parse(at) - heardAt;
  if (Math.abs(difference - aheadMs.peek()) > WAY_MS) aheadMs.value = difference;
}
