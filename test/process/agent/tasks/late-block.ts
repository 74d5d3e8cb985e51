import { setTimeout as sleep } from "node:timers/promises";

/** Keeps the event loop to itself, but not at once: only when its agent waits for jobs again. */
export default async function lateBlock({ ms }: { readonly ms: number }): Promise<void> {
  await sleep(500);
  const until = performance.now() + ms;
  while (performance.now() < until);
}
