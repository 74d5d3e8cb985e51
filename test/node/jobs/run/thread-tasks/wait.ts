import { setTimeout as sleep } from "node:timers/promises";
import type { TaskContext } from "../../../../../src/jobs/tasks/task.ts";

export const isolation = "thread";

/** Waits, politely: its signal ends it. */
export default async function wait(ms: number, { signal, log, progress }: TaskContext): Promise<string> {
  signal.addEventListener("abort", () => log.warn(`told: ${(signal.reason as { why: string }).why}`));
  progress(1); // so that a test knows that it listens
  await sleep(ms, undefined, { signal });
  return "waited";
}
