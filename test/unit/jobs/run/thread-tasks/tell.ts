import { threadId } from "node:worker_threads";
import type { TaskContext } from "../../../../../src/jobs/tasks/task.ts";

export const isolation = "thread";

interface Wish {
  readonly lines?: number;
  readonly progress?: unknown;
  readonly result?: "bigint" | "function";
  readonly fail?: { message: string; retryable: boolean; code: string };
  readonly later?: string;
}

/** Logs, reports, returns or throws what it is asked to, and tells on which thread it ran. */
export default function tell(wish: Wish | null, { log, progress, job, attempt }: TaskContext): unknown {
  for (let line = 0; line < (wish?.lines ?? 0); line++) log.debug(`line ${line}`);
  if (wish?.progress !== undefined) progress(wish.progress as number, "from a thread");
  if (wish?.later) setTimeout(() => log(`left behind: ${wish.later}`), 20);
  if (wish?.fail) throw Object.assign(new Error(wish.fail.message), wish.fail);
  if (wish?.result === "bigint") return 1n;
  if (wish?.result === "function") return () => {};
  return { thread: threadId, id: job.id, created: job.createdAt instanceof Date, attempt };
}
