import { threadId } from "node:worker_threads";
import type { TaskContext } from "../../../../../src/jobs/tasks/task.ts";

export const isolation = "thread";

interface Order {
  readonly lines?: number;
  readonly progress?: unknown;
  readonly result?: "bigint" | "function";
  readonly fail?: { message: string; retryable: boolean; code: string };
  readonly later?: string;
}

/** Logs, reports, returns or throws what it is asked to, and tells on which thread it ran. */
export default function tell(order: Order | null, { log, progress, job, attempt }: TaskContext): unknown {
  for (let line = 0; line < (order?.lines ?? 0); line++) log.debug(`line ${line}`);
  if (order?.progress !== undefined) progress(order.progress as number, "from a thread");
  if (order?.later) setTimeout(() => log(`left behind: ${order.later}`), 20);
  if (order?.fail) throw Object.assign(new Error(order.fail.message), order.fail);
  if (order?.result === "bigint") return 1n;
  if (order?.result === "function") return () => {};
  return { thread: threadId, id: job.id, created: job.createdAt instanceof Date, attempt };
}
